"""Autoencoders, trained without labels, whose codes tell clients apart."""
