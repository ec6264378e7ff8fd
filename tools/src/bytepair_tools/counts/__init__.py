"""Counts of pre-tokens: counted from texts, kept in Parquet, read by training."""
