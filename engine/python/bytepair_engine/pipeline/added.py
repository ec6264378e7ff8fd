"""Where added tokens stand in a text: steps 1 and 3 of docs/formats.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Final

import regex

from bytepair_engine.pipeline.definition import AddedToken

_WORD_AFTER: Final = regex.compile(r"\w")
_SPACE_AFTER: Final = regex.compile(r"\s*")
_SPACE_BEFORE: Final = regex.compile(r"(?r)\s*")
_WORD_BEFORE: Final = regex.compile(r"(?r)\w")


class AddedTokens:
    """A set of added tokens that are looked for in one kind of text."""

    def __init__(self, tokens: Collection[AddedToken]) -> None:
        self._tokens: Final = {token.content: token for token in tokens}
        lengths: dict[str, set[int]] = defaultdict(set)
        for token in tokens:
            lengths[token.content[0]].add(len(token.content))
        #: First character to the lengths of the tokens that start with it, longest first.
        self._lengths: Final = {c: sorted(n, reverse=True) for c, n in lengths.items()}
        firsts = "".join(map(regex.escape, sorted(lengths)))
        self._first: Final = regex.compile(f"[{firsts}]", regex.V0) if tokens else None

    def matches(self, text: str) -> Iterator[tuple[int, AddedToken]]:
        """Each match and where it starts: the leftmost, the longest that starts there, and on
        from its end."""
        start = 0
        while self._first is not None and (first := self._first.search(text, start)):
            start = first.start()
            for length in self._lengths[first.group()]:
                token = self._tokens.get(text[start : start + length])
                if token is not None:
                    yield start, token
                    start += length
                    break
            else:
                start += 1

    def parts(
        self, text: str, passed_over: Callable[[int, AddedToken], bool]
    ) -> Iterator[tuple[int, int, AddedToken | None]]:
        """Cut a text at the matches that are taken.

        Args:
            text: The text.
            passed_over: Whether a special token that starts there is text all the same.
        Yields:
            The start and the end of each part, none of them empty, and its token; None for text.
        """
        end = 0
        for at, token in self.matches(text):
            start, stop = at, at + len(token.content)
            if token.special and passed_over(at, token):
                continue
            if token.single_word and (
                _WORD_BEFORE.match(text, 0, start) or _WORD_AFTER.match(text, stop)
            ):
                continue
            if token.left_strip and (space := _SPACE_BEFORE.match(text, 0, start)):
                start = max(min(end, start), space.start())
            if token.right_strip and (space := _SPACE_AFTER.match(text, stop)):
                stop = space.end()
            if end < start:
                yield end, start, None
            yield start, stop, token
            end = stop
        if end < len(text):
            yield end, len(text), None
