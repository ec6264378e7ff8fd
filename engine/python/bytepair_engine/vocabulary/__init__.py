"""What a vocabulary consists of: rank tables, patterns, special tokens, names, fingerprints."""
