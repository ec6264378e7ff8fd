"""The Rust core. Private: use `Encoding`. `Bpe` implements `interface.Backend`."""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, final

from bytepair_engine.backends.interface import DecodeErrors, OffsetUnit, Text

__all__ = [
    "BREAKS_UNICODE_VERSION",
    "UNICODE_VERSION",
    "Bpe",
    "CancelFlag",
    "MergeTrainer",
    "Pipeline",
    "PretokenCounter",
    "PretokenCounts",
    "RankTable",
    "SpecialSet",
    "break_ends",
    "merge_columns",
    "merges_by_rank",
    "unpack",
]

#: The Unicode version of the scanners' character classes.
UNICODE_VERSION: Final[str]

#: The Unicode version of `break_ends`.
BREAKS_UNICODE_VERSION: Final[str]

def break_ends(text: str, level: str) -> list[int]:
    """Return the ends of the graphemes, words or sentences of a text, in code points."""

def merge_columns(
    halves: list[str], vocabulary: Mapping[str, int], prefix: int
) -> tuple[array[int], array[int], array[int], array[int]] | int:
    """See `merge_list.merges_of`; the vocabulary is a dict."""

def merges_by_rank(
    ranks: list[tuple[bytes, int]],
    merges: tuple[array[int], array[int], array[int]],
    whole_first: bool,
) -> bool:
    """See `as_ranks.merges_by_rank`; the merges are lefts, rights and results. False if a token has
    more than 256 bytes."""

def unpack(data: bytes) -> array[int] | None:
    """See `varint.unpack`."""

@final
class RankTable:
    """Tokens and their ids; the twin of `rank_table.RankTable`, with the same errors."""

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
    """A set of special tokens, compiled by `special_set`; see `interface.SpecialSet`."""

    def is_in(self, data: bytes) -> bool: ...

class _TextMethods:
    """The methods that `Bpe` and `Pipeline` share; see `interface.Backend` for each."""

    def encode(self, text: str, allowed: SpecialSet, disallowed: SpecialSet) -> list[int]: ...
    def encode_array(
        self, text: str, allowed: SpecialSet, disallowed: SpecialSet
    ) -> array[int]: ...
    def encode_packed(self, text: Text, allowed: SpecialSet, disallowed: SpecialSet) -> bytes: ...
    def encode_with_offsets(
        self, text: str, unit: OffsetUnit, allowed: SpecialSet, disallowed: SpecialSet
    ) -> tuple[list[int], list[int]]: ...
    def count(
        self, text: Text, allowed: SpecialSet, disallowed: SpecialSet, limit: int | None
    ) -> int: ...
    def decode(self, ids: Collection[int], errors: DecodeErrors) -> str: ...
    def decode_bytes(self, ids: Collection[int]) -> bytes: ...

@final
class Bpe(_TextMethods):
    """One encoding; see `interface.Backend` for each method."""

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
        """Return the ids of ordinary tokens that merging their own bytes does not produce, in
        order. They occur only as whole pre-tokens. Not cached; takes as long as encoding every
        token."""

    def special_set(self, names: frozenset[str]) -> SpecialSet: ...
    def split(self, text: str) -> list[str]:
        """Return the pre-tokens of ordinary text; the twin of `reference.split`."""
    def encode_batch(
        self, texts: Sequence[str], allowed: SpecialSet, disallowed: SpecialSet
    ) -> list[list[int]]: ...
    def fit_start(
        self, text: str, budget: int, is_complete: bool, near: int, after: str | None
    ) -> tuple[list[tuple[int, int, int]], int | None, list[tuple[int, int]]] | None: ...
    def fit_end(
        self, text: str, budget: int, is_complete: bool, before: str
    ) -> tuple[int | None, list[tuple[int, int]]] | None: ...
    def chunks(
        self,
        text: str,
        here: tuple[int, int, int, int],
        rule: tuple[int, int, int, int],
        is_start: bool,
        known: int | None,
        most: int,
    ) -> tuple[list[list[int]], list[str], tuple[int, int, int, int]]: ...
    def longest(
        self, text: str, budget: int, level: int, from_end: bool, is_complete: bool
    ) -> tuple[int, int] | None: ...
    def count_batch(
        self,
        texts: Sequence[Text],
        allowed: SpecialSet,
        disallowed: SpecialSet,
        limit: int | None,
    ) -> list[int]: ...
    def token_id(self, token: bytes) -> int | None: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...
    def token_byte_values(self) -> list[bytes]: ...

@final
class CancelFlag:
    """The flag by which `cancel.CancelScope` cancels work in the core."""

    def __new__(cls, seconds: float | None = None) -> CancelFlag: ...
    def set(self) -> None: ...
    def enter(self) -> None:
        """Set the flag as that of the current thread."""
    @staticmethod
    def leave() -> None:
        """Remove the flag of the current thread."""

@final
class PretokenCounter:
    """Counts pre-tokens; see `training.counting.Counting`."""

    def __new__(
        cls, pattern: str | None, threads: int, spill: tuple[str, int] | None
    ) -> PretokenCounter:
        """`threads`: 0 for one per core. `spill`: the folder for runs, and the bytes of
        memory above which counts are written there; None to keep all in memory."""
    def add(self, texts: list[str]) -> None: ...
    def add_counts(self, counts: PretokenCounts) -> None: ...
    def add_columns(self, words: bytes, offsets: bytes, counts: bytes) -> bool:
        """Add columns in the format of `PretokenCounts.columns`; False, and nothing is added, if
        they are invalid."""
    @property
    def bytes(self) -> int: ...
    @property
    def runs(self) -> int: ...
    def counts(self) -> PretokenCounts: ...

@final
class PretokenCounts:
    """Every pre-token once, with its count, in the order of first occurrence."""

    @staticmethod
    def from_items(items: Iterable[tuple[bytes, int]]) -> PretokenCounts:
        """Create counts from pre-tokens with counts in [0, 2**64); duplicates are summed."""
    def items(self, start: int, stop: int) -> list[tuple[bytes, int]]: ...
    def columns(self, start: int, stop: int) -> list[bytes] | None:
        """Return three columns: the concatenated pre-tokens, the start of each and the end of the
        last, and the counts; the latter two as little-endian 64-bit numbers. None if a count
        exceeds 2**63 - 1."""
    def buckets(self, number: int) -> list[PretokenCounts]:
        """Split into parts by the pre-tokens' bytes only; each keeps the order."""
    @property
    def unique_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    def __len__(self) -> int: ...

@final
class MergeTrainer:
    """The merges of one training; see `training.merging`."""

    def __new__(
        cls,
        counts: PretokenCounts,
        byte_order: bytes,
        ties: Literal["lowest", "first-seen"],
    ) -> MergeTrainer: ...
    def step(self, target: int, least: int, seconds: float) -> Literal["enough", "no_pair", "time"]:
        """Merge until there are `target` tokens, no pair occurs `least` times, or `seconds` have
        passed."""
    def merges(self) -> list[tuple[int, int, int]]:
        """Return the left id, the right id and the count of each merged pair."""
    def tokens(self) -> list[bytes]:
        """Return the tokens in order of ids."""
    @property
    def length(self) -> int:
        """Current number of tokens of the texts."""
    def __len__(self) -> int:
        """Return the size of the vocabulary."""

@final
class Pipeline(_TextMethods):
    """A pipeline, built by `pipeline/native.py`; see `interface.Backend` for each method."""

    @staticmethod
    def build(
        tokens: list[tuple[bytes, int]],
        rule: tuple[str, Any, Any],
        model: tuple[bool, bool, list[tuple[int, int]], int | None, bool, str, str],
        normalisers: tuple[list[tuple[str, tuple[Any, ...]]], list[tuple[int, int]]],
        pre_tokenizers: list[tuple[str, tuple[Any, ...]]],
        added: list[tuple[str, int, bool, str, bool, bool, bool, bool]],
        decoder: tuple[list[tuple[int, bytes]], tuple[Any, ...]],
        cache_bytes: int,
    ) -> Pipeline: ...
    @staticmethod
    def special_set(names: frozenset[str]) -> SpecialSet: ...
    def cut_counts(
        self, text: str, allowed: SpecialSet, budget: int, front: tuple[str, str] | None
    ) -> tuple[int | None, list[tuple[int, int]]] | None:
        """Return the place at and after which no start of `text` that is cut there has at most
        `budget` tokens, or None if the text does not show one; and the tokens of starts before it,
        by their ends, without those that end within an added token. Places are code points. Valid
        as `context.valid_cuts` says. None if the call was cancelled.

        With `front` the same of ends, by their starts, without those that start within or after an
        added token. No end has at most `budget` tokens that starts before a character before the
        place, if that character is kept. `front` is what the pipeline puts before a text, unless
        the text starts with its second string, which is "" for always."""
