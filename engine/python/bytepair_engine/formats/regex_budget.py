"""How long the regular expressions of one file may run while it is loaded.

Texts meet them on the core alone, in bounded time. But what a normaliser makes of an added token,
and a decoder of every token, is found when a file is read, by a library that backtracks.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

import regex

from bytepair_engine.formats.json_file import Node

#: Seconds for all tokens together. Those of published files take a thousandth of it.
SECONDS: Final = 5.0


class RegexBudget:
    """What is left of the seconds of one file."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """Start with all of them."""
        self._left = seconds

    def replaced(self, node: Node, pattern: regex.Pattern[str], text: str, content: str) -> str:
        """`text` with `content` in place of each match.

        Raises:
            VocabularyError: The budget is spent; it names `node`.
        """
        start = monotonic()
        try:
            # A timeout of 0 would be none.
            made = pattern.sub(lambda _: content, text, timeout=max(self._left, 1e-3))
        except TimeoutError:
            node.refuse(
                f"a regular expression takes more than {SECONDS:g} seconds for the vocabulary's "
                "own tokens: it backtracks without end"
            )
        self._left -= monotonic() - start
        return made
