"""Pipelines, which represent vocabularies that are not a rank table, and their reference backend.
docs/formats.md has the mathematics."""
