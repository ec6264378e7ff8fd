"""`bytepair explain`: the tokens of a text, one by one."""
