"""Drawings of the benchmark."""
