"""The claims of the REPA paper, one module per experiment; importing one registers its claims."""
