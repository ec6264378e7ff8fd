"""Settings: their types, where they come from, how they are checked."""
