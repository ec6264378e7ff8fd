"""Whether a vocabulary is good: `bytepair evaluate`, `bytepair audit` and `bytepair explain`."""
