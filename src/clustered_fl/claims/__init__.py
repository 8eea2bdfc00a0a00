"""Measures and verdicts of the claims in ledgers."""
