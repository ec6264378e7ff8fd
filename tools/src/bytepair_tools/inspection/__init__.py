"""`bytepair inspect`: describe vocabulary files."""
