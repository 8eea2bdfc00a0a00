"""The ledgers as a plan: what there is to compute, from what, and what makes it out of date."""
