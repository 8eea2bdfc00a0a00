"""What only the figures and claims of CFL need."""
