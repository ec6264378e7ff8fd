"""Objects that cannot be copied."""

from __future__ import annotations

from typing import NoReturn


class NoCopies:
    """Base of streams: a copy would share the buffers of the original, which each changes."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """Reject `copy.copy`, `copy.deepcopy` and `pickle`."""
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled; start another one")
