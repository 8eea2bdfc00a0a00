"""The claims of the CFL paper, one module per experiment; importing one registers its claims."""
