"""`bytepair corpus`: process corpora of many files."""
