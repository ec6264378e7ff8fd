"""Training: from texts to a merge table, and what is written of it."""
