"""`bytepair train`: from files of text to a merge table."""
