"""The built-in chat formats."""
