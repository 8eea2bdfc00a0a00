"""Records of jobs: files, archives and how to read them."""
