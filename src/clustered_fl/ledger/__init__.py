"""What a paper says and what is computed of it: the files under `config/`, read and checked."""
