"""Toy problems, theorem and lemmas of CFL."""
