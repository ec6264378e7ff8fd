"""The pipeline of every vocabulary that is more than a rank table, and its definition in
plain Python. docs/formats.md has the mathematics."""
