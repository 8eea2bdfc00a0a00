"""What only the figures and claims of REPA need."""
