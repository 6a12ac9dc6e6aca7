"""Embedding backends behind the Embedder port. Each imports its library only when it is built."""
