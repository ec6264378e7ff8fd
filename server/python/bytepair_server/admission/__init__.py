"""Admission: which requests may run, in which order, and on which thread."""
