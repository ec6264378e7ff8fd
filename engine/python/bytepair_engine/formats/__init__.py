"""Readers of the vocabulary file formats."""
