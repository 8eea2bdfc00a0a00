"""Theorems, communication and public code of FLT."""
