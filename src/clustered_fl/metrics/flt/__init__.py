"""Measurements for the figures and claims of FLT only."""
