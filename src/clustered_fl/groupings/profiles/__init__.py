"""Parts of groupings that cluster clients by one vector each (REPA, WD)."""
