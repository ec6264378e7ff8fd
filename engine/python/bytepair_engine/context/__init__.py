"""Text that must fit a number of tokens: cut, split and inspected, with exact counts."""
