"""What the comparison of methods on the same clients needs."""
