"""The jobs of the workflow; each computes one thing and writes its record."""
