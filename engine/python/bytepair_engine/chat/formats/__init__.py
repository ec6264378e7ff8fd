"""The built-in chat formats, one idea a file."""
