"""A pipeline: what a vocabulary of any format is once its loader has read it.

A pipeline is data. `pipeline.backend.PipelineBackend` says what it means, in plain Python, and
docs/formats.md says it in mathematics; no name of a format occurs in either. A vocabulary that a
rank table, one split pattern and special tokens describe wholly never becomes a pipeline: its
loader makes it an encoding like the built-in ones.

Every regular expression here is in the syntax of docs/patterns.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from bytepair_engine.errors import UnknownTokenId

# Normalisers: text to text, applied one after the other to each stretch of ordinary text.


@dataclass(frozen=True, slots=True)
class UnicodeForm:
    """One of Unicode's four normalisation forms, by tables of Unicode 9: a character that was
    assigned later is a starter that neither decomposes nor composes."""

    form: Literal["NFC", "NFD", "NFKC", "NFKD"]


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Each character's full lower-case mapping, by itself (so no final sigma)."""


@dataclass(frozen=True, slots=True)
class Prepend:
    """`text` before a stretch that is not empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """`content` in place of each match of a regular expression, successive and without overlap.
    An empty match inserts it."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class Surround:
    """`content` before and after each match of a regular expression, successive and without
    overlap."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Without the white space (Unicode's White_Space) at the chosen ends of a stretch."""

    left: bool
    right: bool


@dataclass(frozen=True, slots=True)
class CharsMap:
    """A precompiled map from strings to strings, applied to each grapheme cluster: one of less
    than 6 bytes becomes the value of the shortest key that starts it, if there is one, and
    otherwise each of its characters does.

    Attributes:
        table: The map as SentencePiece writes it: the size of a double-array trie in 4 bytes
            (little-endian), the trie, and the strings that its values point at.
    """

    table: bytes


@dataclass(frozen=True, slots=True)
class Spacing:
    """One walk over a stretch that maps strings to strings and makes its spaces regular;
    docs/formats.md defines it.

    Attributes:
        table: A map as that of `CharsMap`, of which the longest key counts here; b"" for none.
        kept: Strings that the map leaves as they are; no space is added to or taken from within.
        tidy: Whether spaces at the ends go, and of several in a row all but one.
        pad: Where a space is put if the stretch is not empty: before it, after it or nowhere.
        mark: What takes the place of each space in the end: one character, which may be a space.
    """

    table: bytes
    kept: tuple[str, ...]
    tidy: bool
    pad: Literal["before", "after", "nowhere"]
    mark: str


Normaliser = UnicodeForm | Lowercase | Prepend | Replace | Surround | Strip | CharsMap | Spacing

# Pre-tokenizers: a piece to pieces, applied one after the other, each to the pieces of the last.
# Pieces that are empty are dropped after each.

Behaviour = Literal["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


@dataclass(frozen=True, slots=True)
class Split:
    """Cuts a piece at the successive matches of a regular expression.

    Matches and the stretches between them alternate; `inverted` exchanges the two roles.

    Attributes:
        pattern: The regular expression; it sees the piece alone.
        behaviour: What becomes of matches: "isolated", pieces of their own; "removed";
            "merged_with_previous" or "merged_with_next" to them: one with the stretch before or
            after it, if that is no match; "contiguous": neighbouring matches are one piece.
        inverted: Whether the stretches are the matches.
    """

    pattern: str
    behaviour: Behaviour = "isolated"
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class Substitute:
    """`new` in place of each `old`, one character each."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """One character before a piece that does not start with it: before every piece, or only
    before one that starts where the original text does."""

    character: str
    first_only: bool = False


@dataclass(frozen=True, slots=True)
class ByteAlphabet:
    """Each byte of a piece's UTF-8 becomes the character that `byte_alphabet` writes it as, for
    the steps after this one; the model turns them into bytes again. Only where `units` is
    "bytes", and only if a step follows: otherwise it changes nothing, and is left out."""


PreTokenizer = Split | Substitute | Prefix | ByteAlphabet

# The model: a piece to ids.


@dataclass(frozen=True, slots=True)
class Ranks:
    """Two neighbours merge if their concatenation is a token; the lowest id first."""


#: Priorities, results, lefts and rights: see `Merges`.
Columns: TypeAlias = "tuple[array[int], array[int], array[int], array[int]]"


@dataclass(frozen=True, slots=True)
class Merges:
    """Two neighbours merge if the pair of their ids is listed; the lowest priority first.

    There are hundreds of thousands, so they are four columns, in order of priority.

    Attributes:
        priorities: Rising.
        results: The ids of what pairs become.
        lefts: The ids of their first halves.
        rights: The ids of their second halves; no pair is there twice.
    """

    priorities: array[int]
    results: array[int]
    lefts: array[int]
    rights: array[int]

    @classmethod
    def listed(cls, lefts: Iterable[int], rights: Iterable[int], results: Iterable[int]) -> Merges:
        """Pairs by their place in a list; of one that is listed twice the last place counts."""
        columns = [array("I", ids) for ids in (results, lefts, rights)]
        priorities = array("I", range(len(columns[0])))
        _, left, right = columns
        if len(set(zip(left, right, strict=True))) < len(priorities):
            last = dict(zip(zip(left, right, strict=True), priorities, strict=True))
            priorities = array("I", sorted(last.values()))
            columns = [array("I", (column[i] for i in priorities)) for column in columns]
        return cls(priorities, *columns)

    def pairs(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(left id, right id) to (priority, id of the result)."""
        both = zip(self.lefts, self.rights, strict=True)
        return dict(zip(both, zip(self.priorities, self.results, strict=True), strict=True))


@dataclass(frozen=True, slots=True)
class Scores:
    """Two neighbours merge if their concatenation is a token; the highest score first. Parts are
    looked up only after that, so that what is no token can still merge.

    Attributes:
        scores: Id to score, for every token that merging may give.
        taken_apart: Id to two parts: a token that merging may give and text never becomes. It is
            replaced by these two, and they by theirs.
    """

    scores: Mapping[int, float]
    taken_apart: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)


MergeRule = Ranks | Merges | Scores


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """How a piece becomes tokens; docs/formats.md defines it step by step.

    Attributes:
        tokens: Token to id, one to one: real bytes for units "bytes", UTF-8 for "characters".
        rule: Which neighbours merge, and in which order; the leftmost of several that are equal.
        units: What a piece starts as: bytes, or characters.
        whole_first: Whether a piece that is a token is that token, without any merging.
        byte_tokens: Byte to id: a unit that is no token becomes these if all its bytes have one.
        unknown: The id of any other unit that is no token; None: such a unit vanishes.
        fuse_unknown: Whether neighbouring unknown units are one token.
        prefix: Put before every unit but a piece's first, to look it up.
        suffix: Put after a piece's last unit, to look it up.
    """

    tokens: Mapping[bytes, int]
    rule: MergeRule
    units: Literal["bytes", "characters"]
    whole_first: bool = False
    byte_tokens: Mapping[int, int] = field(default_factory=dict)
    unknown: int | None = None
    fuse_unknown: bool = False
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedToken:
    """A string that is one token wherever it stands, before the model sees the text.

    Attributes:
        content: What is looked for, not empty: in the text as it came, or with `normalised` in
            normalised text (and then it is itself normalised already).
        id: Its id.
        special: Whether a request must allow it; otherwise it is always found.
        name: The spelling by which a request allows it; `content` as the file has it.
        left_strip: Whether it takes the white space before it.
        right_strip: Whether it takes the white space after it.
        single_word: Whether it is found only where no word character is beside it.
        normalised: See `content`.
    """

    content: str
    id: int
    special: bool
    name: str = ""
    left_strip: bool = False
    right_strip: bool = False
    single_word: bool = False
    normalised: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoder:
    """What each token gives, and what the ends of a text do to it. Tokens' bytes are joined.

    Attributes:
        middle: Id to bytes, for every id.
        first: Id to bytes for a sequence's first token, where they are others than in `middle`.
        first_until_text: Whether a token counts as the first as long as those before it gave no
            bytes.
        last: The same for its last token.
        only: The same for its only token.
        strip_start: A character, and how many of it at most are taken from the start.
        strip_end: The same for the end.
    """

    middle: Mapping[int, bytes]
    first: Mapping[int, bytes] = field(default_factory=dict)
    first_until_text: bool = False
    last: Mapping[int, bytes] = field(default_factory=dict)
    only: Mapping[int, bytes] = field(default_factory=dict)
    strip_start: tuple[str, int] = ("", 0)
    strip_end: tuple[str, int] = ("", 0)

    @property
    def is_plain(self) -> bool:
        """Whether a token's bytes never depend on where it stands."""
        return not (
            self.first or self.last or self.only or self.strip_start[1] or self.strip_end[1]
        )

    def amid(self, ids: Iterable[int]) -> bytes:
        """The bytes of tokens that are neither the first nor the last.

        Raises:
            UnknownTokenId: One has none.
        """
        middle = self.middle
        parts = []
        for index, token_id in enumerate(ids):
            if token_id not in middle:
                raise UnknownTokenId(token_id, index)
            parts.append(middle[token_id])
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Template:
    """The ids of special tokens that frame a text where a request asks for it."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def around(self, ids: Iterable[int]) -> list[int]:
        """The ids of a text in their frame."""
        return [*self.before, *ids, *self.after]


#: What frames nothing.
NO_TEMPLATE: Final = Template()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """One vocabulary, whole.

    Attributes:
        model: Pieces to ids.
        decoder: Ids to text.
        normalisers: Applied in order to each stretch between added tokens that are found in the
            text as it came.
        pre_tokenizers: Applied in order to each stretch between added tokens.
        added: The added tokens; no two with one content, of those that are found in one text.
        template: What frames a text on request.
    """

    model: Model
    decoder: Decoder
    normalisers: tuple[Normaliser, ...] = ()
    pre_tokenizers: tuple[PreTokenizer, ...] = ()
    added: tuple[AddedToken, ...] = ()
    template: Template = NO_TEMPLATE
