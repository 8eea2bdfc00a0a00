"""What jobs leave behind, and how to read it."""
