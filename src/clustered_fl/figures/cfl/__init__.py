"""Drawings of CFL."""
