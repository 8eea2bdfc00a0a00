"""Drawings of REPA."""
