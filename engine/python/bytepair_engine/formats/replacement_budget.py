"""Limits of the replacements that are made in tokens while a file is loaded.

For texts, the core runs regular expressions in bounded time. While a file is loaded, a library that
backtracks applies those of normalisers to added tokens, and those of decoders to all tokens. Each
replacement can also multiply the length of a token.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

import regex

from bytepair_engine.formats.json_file import Node

#: Time limit in seconds for all tokens together. Published files take a thousandth of it.
SECONDS: Final = 5.0

#: Maximum of the characters by which all tokens together grow. Those of published files do not.
CHARACTERS: Final = 2**24


class ReplacementBudget:
    """The remaining time and growth of one file."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """Start with all of both."""
        self._seconds = seconds
        self._characters = CHARACTERS

    def replaced_text(self, node: Node, old: str, text: str, content: str) -> str:
        """Replace each `old` in `text` by `content`.

        Raises:
            VocabularyError: The tokens grow too much; the error has the path of `node`.
        """
        if len(content) > len(old):
            self._grow(node, text.count(old) * (len(content) - len(old)))
        return text.replace(old, content)

    def replaced(self, node: Node, pattern: regex.Pattern[str], text: str, content: str) -> str:
        """Replace each match in `text` by `content`.

        Raises:
            VocabularyError: The time is over, or the tokens grow too much; the error has the path
                of `node`.
        """

        def replacement(match: regex.Match[str]) -> str:
            self._grow(node, len(content) - (match.end() - match.start()))
            return content

        start = monotonic()
        try:
            # A timeout of 0 would mean no timeout.
            result = pattern.sub(replacement, text, timeout=max(self._seconds, 1e-3))
        except TimeoutError:
            node.reject(
                f"its regular expression takes more than {SECONDS:g} seconds for the tokens of the "
                "vocabulary, because it backtracks"
            )
        self._seconds -= monotonic() - start
        return result

    def _grow(self, node: Node, characters: int) -> None:
        self._characters -= max(0, characters)
        if self._characters < 0:
            node.reject(f"replacements add more than {CHARACTERS} characters to the tokens")
