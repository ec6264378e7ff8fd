"""`bytepair corpus`: jobs over corpora of many files."""
