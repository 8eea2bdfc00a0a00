"""The claims of the FLT paper, one module per experiment; importing one registers its claims."""
