"""Metrics, logs and the HTTP port for operators."""
