"""Training from files: what `bytepair train` and `bytepair extend` do."""
