"""Texts from files: plain, JSON Lines or Parquet, compressed or not."""
