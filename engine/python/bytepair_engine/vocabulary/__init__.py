"""The parts of a vocabulary: rank tables, patterns, special tokens, names, fingerprints."""
