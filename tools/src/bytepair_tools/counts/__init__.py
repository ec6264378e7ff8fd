"""Counts of pre-tokens: count texts, store counts in Parquet, and read them for training."""
