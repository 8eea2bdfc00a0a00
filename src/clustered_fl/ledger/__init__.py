"""Ledgers, the files in `config/papers/`, and the configuration: reading and checking."""
