"""Search for added tokens in text: steps 1 and 3 of docs/formats.md."""

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
    """A set of added tokens to search for."""

    def __init__(self, tokens: Collection[AddedToken]) -> None:
        self._tokens: Final = {token.content: token for token in tokens}
        lengths: dict[str, set[int]] = defaultdict(set)
        for token in tokens:
            lengths[token.content[0]].add(len(token.content))
        #: First character to the lengths of the tokens that start with it, in descending order.
        self._lengths: Final = {c: sorted(n, reverse=True) for c, n in lengths.items()}
        firsts = "".join(map(regex.escape, sorted(lengths)))
        self._first: Final = regex.compile(f"[{firsts}]", regex.V0) if tokens else None

    def matches(self, text: str) -> Iterator[tuple[int, AddedToken]]:
        """Yield the matches with their starts: the leftmost, the longest at a position, without
        overlaps."""
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
        self, text: str, is_text: Callable[[int, AddedToken], bool]
    ) -> Iterator[tuple[int, int, AddedToken | None]]:
        """Split a text into added tokens and the text between them.

        Args:
            text: The text.
            is_text: Returns whether a special token at a position is ordinary text.
        Yields:
            The start and the end of each non-empty part, and its token; None for text.
        """
        end = 0
        for at, token in self.matches(text):
            start, stop = at, at + len(token.content)
            if token.special and is_text(at, token):
                continue
            if token.single_word and (
                _WORD_BEFORE.match(text, 0, start) or _WORD_AFTER.match(text, stop)
            ):
                continue
            if token.left_strip and (space := _SPACE_BEFORE.match(text, 0, start)):
                start = max(min(end, start), space.start())
            if token.right_strip and (space := _SPACE_AFTER.match(text, stop)):
                stop = space.end()
            if token.left_strip and stop == end:
                continue  # as in `tokenizers`: the token before it stripped it
            if end < start:
                yield end, start, None
            yield start, stop, token
            end = stop
        if end < len(text):
            yield end, len(text), None
