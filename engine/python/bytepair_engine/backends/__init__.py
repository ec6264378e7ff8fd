"""What computes ids: the interface, the reference in plain Python, and the choice of the core."""
