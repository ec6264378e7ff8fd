"""The Rust core. Private: use `Encoding`. `Bpe` satisfies `backend.Backend`."""

from array import array
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Literal, final

from bytepair_engine.backend import DecodeErrors, OffsetUnit

__all__ = ["UNICODE_VERSION", "Bpe", "CancelFlag", "RankTable", "SpecialSet"]

#: The version of the Unicode Character Database behind the scanners' character classes.
UNICODE_VERSION: Final[str]

@final
class RankTable:
    """Tokens and their ids; the twin of `rank_table.RankTable`, with the same faults."""

    @staticmethod
    def parse_tiktoken(data: bytes) -> RankTable: ...
    @staticmethod
    def from_items(items: Iterable[tuple[bytes, int]]) -> RankTable: ...
    def items(self) -> list[tuple[bytes, int]]: ...
    def missing_byte(self) -> int | None: ...
    def has_id(self, token_id: int) -> bool: ...
    def max_id(self) -> int: ...
    def __len__(self) -> int: ...

@final
class SpecialSet:
    """What `Bpe.special_set` compiles."""

@final
class Bpe:
    """One encoding; see `backend.Backend` for each method."""

    name: ClassVar[Literal["native"]]
    def __new__(
        cls,
        table: RankTable,
        pattern: str,
        special_tokens: dict[str, int],
        *,
        cache_bytes: int,
        threads: int,
    ) -> Bpe:
        """See `resources.Resources` for the last two."""
    @property
    def splitter(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    def unreachable_ids(self) -> list[int]:
        """The ids of the ordinary tokens that merging their own bytes does not give, in order:
        they are given for a whole pre-token alone. Computed anew; takes as long as encoding
        every token."""

    def special_set(self, names: frozenset[str]) -> SpecialSet: ...
    def split(self, text: str) -> list[str]:
        """The pre-tokens of ordinary text; the twin of `reference.split`."""
    def encode(self, text: str, allowed: SpecialSet, disallowed: SpecialSet) -> list[int]: ...
    def encode_array(
        self, text: str, allowed: SpecialSet, disallowed: SpecialSet
    ) -> array[int]: ...
    def encode_packed(self, text: str, allowed: SpecialSet, disallowed: SpecialSet) -> bytes: ...
    def encode_with_offsets(
        self, text: str, unit: OffsetUnit, allowed: SpecialSet, disallowed: SpecialSet
    ) -> tuple[list[int], list[int]]: ...
    def encode_batch(
        self, texts: Sequence[str], allowed: SpecialSet, disallowed: SpecialSet
    ) -> list[list[int]]: ...
    def count(
        self, text: str, allowed: SpecialSet, disallowed: SpecialSet, limit: int | None
    ) -> int: ...
    def count_batch(
        self,
        texts: Sequence[str],
        allowed: SpecialSet,
        disallowed: SpecialSet,
        limit: int | None,
    ) -> list[int]: ...
    def decode(self, ids: Sequence[int], errors: DecodeErrors) -> str: ...
    def decode_bytes(self, ids: Sequence[int]) -> bytes: ...
    def token_id(self, token: bytes) -> int | None: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...
    def token_byte_values(self) -> list[bytes]: ...

@final
class CancelFlag:
    """What `cancel.CancelScope` stops the core's work by."""

    def __new__(cls) -> CancelFlag: ...
    def set(self) -> None: ...
    def enter(self) -> None:
        """Let this thread work under the flag."""
    @staticmethod
    def leave() -> None:
        """Let this thread work under none."""
