"""The ledgers as a plan: what to compute, from which inputs, and when to recompute it."""
