"""Derived, rebuildable structures: lexical postings, key vectors, mention links. None of them is a record."""
