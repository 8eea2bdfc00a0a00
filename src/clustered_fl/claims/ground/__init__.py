"""Claims on the same ground: what people believe of these methods, put to the test."""
