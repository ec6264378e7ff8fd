"""Jobs over corpora of many files: what `bytepair corpus` does."""
