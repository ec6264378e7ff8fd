"""File formats: each file here reads one, and nothing of it is known elsewhere."""
