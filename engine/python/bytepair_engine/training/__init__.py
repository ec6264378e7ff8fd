"""Training of vocabularies from texts, and writers of their files."""
