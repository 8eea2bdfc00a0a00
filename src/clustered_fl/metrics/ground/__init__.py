"""Measurements for the figures and claims of the benchmark only."""
