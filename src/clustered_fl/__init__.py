"""A replication of three papers on clustered federated learning, claim by claim."""
