"""Which requests may run, in what order, and where they are computed."""
