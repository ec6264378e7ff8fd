"""`bytepair evaluate`: several encodings side by side on the same texts."""
