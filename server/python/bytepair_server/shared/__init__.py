"""What the processes of one server share, in memory that they inherit."""
