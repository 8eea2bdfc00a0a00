"""Parts of groupings that describe a client by one vector and cluster these (REPA, WD)."""
