"""Autoencoders, trained without labels; groupings compare clients by their codes."""
