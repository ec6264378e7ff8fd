"""`bytepair evaluate`: compare encodings on the same texts."""
