"""Measurements for the figures and claims of REPA only."""
