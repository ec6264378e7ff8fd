"""`bytepair audit`: what is wrong with a vocabulary."""
