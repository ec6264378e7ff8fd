"""`bytepair inspect`: what a vocabulary file is."""
