"""What only the figures and claims of FLT need."""
