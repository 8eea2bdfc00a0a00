"""Drawings of FLT."""
