"""Helpers that several test modules share: the outside oracle, and texts that are hard to
encode."""
