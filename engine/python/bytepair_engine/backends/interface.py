"""The interface of a backend, which `Encoding` calls.

`reference.ReferenceBackend` is the definition, `_core.Bpe` the fast implementation. `Encoding`
resolves arguments and defaults. A backend receives sets of special tokens that it compiled, and
text that may still contain lone surrogates, which it rejects.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

OffsetUnit = Literal["byte", "code_point", "utf16"]
DecodeErrors = Literal["replace", "strict"]
#: Text, or its UTF-8 bytes.
Text = str | bytes


class SpecialTokenSet(Protocol):
    """A set of special tokens, compiled."""

    def is_in(self, data: bytes) -> bool:
        """Whether UTF-8 bytes contain one of them. The bytes may start or end within a
        character."""


S = TypeVar("S", bound=SpecialTokenSet)


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

    def decode(self, ids: Sequence[int], errors: DecodeErrors) -> str:
        """Raises UnknownTokenId, InvalidUnicode (strict only)."""

    def decode_bytes(self, ids: Sequence[int]) -> bytes: ...

    def token_id(self, token: bytes) -> int | None:
        """Return the id of an ordinary (not special) token; None for other bytes."""

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return the bytes of an ordinary or special token; None for an unknown id."""

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of every ordinary token, sorted, as in tiktoken."""


class Fits(Protocol):
    """What the native backend adds for the published split patterns: how much ordinary text has at
    most `budget` tokens. Places are code points."""

    def fit_start(
        self, text: str, budget: int, is_complete: bool, near: int, /
    ) -> tuple[list[tuple[int, int, int]], int | None, list[tuple[int, int]]] | None:
        """Where the longest start is.

        Returns (place, settled, count) of places from which counts go on (see
        `context.measure.Mark`); the place at and after which no cut text fits, or None where the
        whole text fits; and the counts of some texts that are cut before that, by place. None for
        all of it if `text` is not complete, and too short to know.
        """

    def fit_end(
        self, text: str, budget: int, is_complete: bool, /
    ) -> tuple[int | None, list[tuple[int, int]]] | None:
        """Where the longest end is.

        Returns the first place at which one that fits may start, or None where the whole text
        fits; and the counts of some ends, by place. None for all of it if `text` is not complete,
        and too short to know.
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
    ) -> tuple[list[list[int]], tuple[int, int, int, int]]:
        """The next chunks, at most `most`: fewer where the text ends, and before one that the text
        near it does not decide.

        Takes where the next chunk starts (its byte, its code point, the end of the last chunk, the
        tokens that both share); the rule (the most tokens, the least of one that ends at a boundary
        coarser than a grapheme, the most that are shared, the index of the level); whether no
        boundary depends on what stands before the text; and, of a text that has arrived in part,
        the place before which every boundary is certain. Returns lists of the starts, ends, counts,
        shared tokens and indices of the level, and where the next one starts.
        """

    def longest(
        self, text: str, budget: int, level: int, from_end: bool, is_complete: bool, /
    ) -> tuple[int, int] | None:
        """The boundary of a level, by its index, at which the longest start of a text ends that has
        at most `budget` tokens, or its longest end starts; and its tokens. The whole text where it
        fits. None where no boundary fits, and where the text near it does not decide.

        What is not complete is the start of a longer text, or the end of one.
        """
