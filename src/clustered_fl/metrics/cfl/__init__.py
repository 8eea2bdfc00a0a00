"""Measurements for the figures and claims of CFL only."""
