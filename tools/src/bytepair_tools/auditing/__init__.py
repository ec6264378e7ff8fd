"""`bytepair audit`: check a vocabulary for problems."""
