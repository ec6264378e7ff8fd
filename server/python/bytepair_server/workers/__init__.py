"""Processes: the supervisor, its workers, and the memory that they share."""
