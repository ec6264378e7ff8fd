"""An id of another type than int."""

from __future__ import annotations


class Scalar:
    """An id like a tensor's element: its hash and equality are not those of the integer."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value
