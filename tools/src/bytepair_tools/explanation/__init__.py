"""`bytepair explain`: show the tokens of a text."""
