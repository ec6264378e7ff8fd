"""Shared helpers of commands: encodings by name, files, tables, progress and exit status."""
