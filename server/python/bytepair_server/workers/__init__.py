"""Processes: the supervisor and its workers."""
