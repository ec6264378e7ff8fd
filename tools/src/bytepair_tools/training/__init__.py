"""`bytepair train` and `bytepair extend`: train encodings, and add special tokens."""
