"""What several commands use: encodings by name, files, tables, progress, how a command ends."""
