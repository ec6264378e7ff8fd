"""The interface of a backend, which `Encoding` calls.

`reference.ReferenceBackend` is the definition, `_core.Bpe` the fast implementation. `Encoding`
resolves arguments and defaults. A backend receives sets of special tokens that it compiled, and
text that may still contain lone surrogates, which it rejects.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Literal, Protocol, TypeVar

OffsetUnit = Literal["byte", "code_point", "utf16"]
DecodeErrors = Literal["replace", "strict"]
#: Text, or its UTF-8 bytes.
Text = str | bytes


class SpecialSet(Protocol):
    """A set of special tokens, compiled."""

    def is_in(self, data: bytes) -> bool:
        """Whether UTF-8 bytes contain one of them. The bytes may start or end within a
        character."""


S = TypeVar("S", bound=SpecialSet)


class Backend(Protocol[S]):
    """One loaded encoding. Immutable and thread-safe.

    `S` is a compiled set of special tokens: see `special_set`.
    """

    @property
    def name(self) -> Literal["native", "reference"]: ...

    @property
    def splitter(self) -> str:
        """The splitter: the name of a hand-written scanner, or "regex" for an engine that runs
        any pattern."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint: "sha256:" and 64 hexadecimal digits; see `fingerprint.py`."""

    def special_set(self, names: frozenset[str]) -> S:
        """Compile a set of strings to search for.

        Allowed strings are special tokens; disallowed ones may be any strings, as in tiktoken.
        """

    def encode(self, text: str, allowed: S, disallowed: S) -> list[int]:
        """Raises SpecialTokenFound, InvalidUnicode."""

    def encode_array(self, text: str, allowed: S, disallowed: S) -> array[int]:
        """Encode into an array of 32-bit unsigned integers (typecode "I")."""

    def encode_packed(self, text: Text, allowed: S, disallowed: S) -> bytes:
        """Encode into concatenated base-128 varints: the content of a packed `repeated uint32`
        field."""

    def encode_with_offsets(
        self, text: str, unit: OffsetUnit, allowed: S, disallowed: S
    ) -> tuple[list[int], list[int]]:
        """Return the ids and the start of each token. A token that starts inside a character has
        the offset of that character, except in bytes, where offsets are exact."""

    def encode_batch(self, texts: Sequence[str], allowed: S, disallowed: S) -> list[list[int]]: ...

    def count(self, text: Text, allowed: S, disallowed: S, limit: int | None) -> int:
        """Return the number of tokens, or `limit` + 1 if it exceeds `limit`."""

    def count_batch(
        self, texts: Sequence[Text], allowed: S, disallowed: S, limit: int | None
    ) -> list[int]: ...

    def decode(self, ids: Collection[int], errors: DecodeErrors) -> str:
        """Raises UnknownTokenId, InvalidUnicode (strict only)."""

    def decode_bytes(self, ids: Collection[int]) -> bytes: ...

    def token_id(self, token: bytes) -> int | None:
        """Return the id of an ordinary (not special) token; None for other bytes."""

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return the bytes of an ordinary or special token; None for an unknown id."""

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of every ordinary token, sorted, as in tiktoken."""


#: The result of `Fits.fit_start`.
Starts = tuple[list[tuple[int, int, int]], int | None, list[tuple[int, int]]]


class Fits(Protocol):
    """Searches that the native backend has for the published split patterns: how much ordinary text
    has at most `budget` tokens. Positions are code points. `text` is a whole text, or unless
    `is_complete` the start of a longer one (for searches from the end, its end)."""

    def fit_start(
        self, text: str, budget: int, is_complete: bool, near: int, after: str | None, /
    ) -> Starts | None:
        """Search for the longest start that fits.

        Args:
            text: See above.
            budget: See above.
            is_complete: See above.
            near: Maximum length of a pre-token in which every position is to be tried, in bytes.
            after: What follows the start, and is counted; None for nothing, "" for text that is not
                known yet and is not counted.
        Returns:
            The checkpoints from which counting can continue (`context.core_search.Checkpoint`); the
            position at and after which no cut fits, None if the whole text fits; and the counts of
            some texts that are cut before it, by the position of the cut. None if an incomplete
            text is too short to decide.
        """

    def fit_end(
        self, text: str, budget: int, is_complete: bool, before: str, /
    ) -> tuple[int | None, list[tuple[int, int]]] | None:
        """Search for the longest end that fits. `before` stands before it and is counted; unless it
        is empty, `text` is known not to fit.

        Returns:
            The first position at which an end that fits may start, None if the whole text fits;
            and the counts of some ends, by their start. None if an incomplete text is too short to
            decide.
        """

    def chunks(
        self,
        text: str,
        here: tuple[int, int, int, int],
        rule: tuple[int, int, int, int],
        is_start: bool,
        known: int | None,
        most: int,
        /,
    ) -> tuple[list[list[int]], list[str], tuple[int, int, int, int]]:
        """Find the next chunks.

        Args:
            text: The text.
            here: Start of the next chunk: its byte, its code point, the end of the last chunk, and
                the number of tokens that both share.
            rule: Maximum tokens of a chunk, minimum tokens of one that ends at a boundary coarser
                than a grapheme, maximum shared tokens, and the index of the level.
            is_start: Whether no boundary depends on text before this one.
            known: For a text that has only arrived in part: the position before which every
                boundary is certain; else None.
            most: Maximum number of chunks. Fewer are returned at the end of the text, and before a
                chunk that the text nearby does not decide.
        Returns:
            Lists of starts, ends, counts, shared tokens and indices of levels; the texts; and
            `here` of the next chunk.
        """

    def longest(
        self, text: str, budget: int, level: int, from_end: bool, is_complete: bool, /
    ) -> tuple[int, int] | None:
        """Find the longest start, or `from_end` the longest end, that fits and is cut at a boundary
        of `level`, which is an index.

        Returns:
            The position of the cut, and the number of tokens; a whole text that fits is not cut.
            None if no boundary fits, or if the text nearby does not decide.
        """
