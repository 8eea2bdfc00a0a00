"""Drawings of the comparison on the same clients."""
