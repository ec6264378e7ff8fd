"""The definition of pipelines: a common representation of the vocabularies of all formats.

A pipeline is data. `pipeline.backend.PipelineBackend` defines its meaning in plain Python, and
docs/formats.md in mathematics; neither depends on a file format. A vocabulary that is equivalent to
a rank table, a split pattern and special tokens does not become a pipeline, but an encoding like
the built-in ones.

All regular expressions are in the syntax of docs/patterns.md.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from bytepair_engine.errors import UnknownTokenId

# Normalisers: from text to text, applied in order to each stretch of ordinary text.


@dataclass(frozen=True, slots=True)
class UnicodeForm:
    """Converts text to a Unicode normalisation form, by the tables of Unicode 9. Characters that
    were assigned later are starters that neither decompose nor compose."""

    form: Literal["NFC", "NFD", "NFKC", "NFKD"]


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Maps each character to lower case by its full mapping, without context (no final sigma)."""


@dataclass(frozen=True, slots=True)
class Prepend:
    """Inserts `text` before each non-empty stretch."""

    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces successive matches of a regular expression by `content`. An empty match inserts
    it."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class Surround:
    """Inserts `content` before and after successive matches of a regular expression."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Strips white space (Unicode's White_Space) from the chosen ends of a stretch."""

    left: bool
    right: bool


@dataclass(frozen=True, slots=True)
class CharsMap:
    """Applies a compiled map from strings to strings to each grapheme cluster.

    A cluster of less than 6 bytes becomes the value of the shortest key that it starts with. If
    there is no such key, or the cluster is longer, this is done for each of its characters.

    Attributes:
        table: The map in SentencePiece's format: the size of a double-array trie in 4 bytes
            (little-endian), the trie, and the strings that its values point to.
    """

    table: bytes


@dataclass(frozen=True, slots=True)
class Spacing:
    """Maps strings to strings and normalises spaces in one pass; docs/formats.md defines it.

    Attributes:
        table: A map as in `CharsMap`, but with the longest matching key; b"" for none.
        kept: Strings that are left unchanged, including their spaces.
        tidy: Whether to strip spaces at the ends and collapse runs of spaces.
        pad: The position of an additional space in a non-empty stretch.
        mark: The character that replaces each space in the end, which may be a space.
    """

    table: bytes
    kept: tuple[str, ...]
    tidy: bool
    pad: Literal["before", "after", "nowhere"]
    mark: str


Normaliser = UnicodeForm | Lowercase | Prepend | Replace | Surround | Strip | CharsMap | Spacing

# Pre-tokenizers: from a piece to pieces, applied in order, each to the pieces of the previous one.
# Empty pieces are dropped after each step.

Behaviour = Literal["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


@dataclass(frozen=True, slots=True)
class Split:
    """Splits a piece at successive matches of a regular expression.

    Attributes:
        pattern: The regular expression; it sees only the piece.
        behaviour: The treatment of matches. "isolated": each match is a piece. "removed": matches
            are dropped. "merged_with_previous" and "merged_with_next": a match is joined to the
            text before or after it, unless that is a match too. "contiguous": adjacent matches are
            one piece.
        inverted: Whether to exchange the roles of matches and the text between them.
    """

    pattern: str
    behaviour: Behaviour = "isolated"
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class Substitute:
    """Replaces each character `old` by the character `new`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """Inserts a character before each piece that does not start with it. With `first_only`, only
    before a piece at the start of the original text."""

    character: str
    first_only: bool = False


@dataclass(frozen=True, slots=True)
class ByteAlphabet:
    """Encodes the UTF-8 bytes of a piece as characters (see `byte_alphabet`) for the steps after
    this one; the model decodes them. Used only with the units "bytes", and only before another
    step: at the end it would have no effect."""


PreTokenizer = Split | Substitute | Prefix | ByteAlphabet

# The model: from a piece to ids.


@dataclass(frozen=True, slots=True)
class Ranks:
    """Two adjacent parts merge if their concatenation is a token; the lowest id first."""


#: Priorities, results, lefts and rights: see `Merges`.
Columns: TypeAlias = "tuple[array[int], array[int], array[int], array[int]]"


@dataclass(frozen=True, slots=True)
class Merges:
    """Two adjacent parts merge if the pair of their ids is listed; the lowest priority first.

    The pairs, often hundreds of thousands, are stored in four columns, in order of priority. No
    pair occurs twice.

    Attributes:
        priorities: The priorities, increasing.
        results: The ids of the results.
        lefts: The ids of the left parts.
        rights: The ids of the right parts.
    """

    priorities: array[int]
    results: array[int]
    lefts: array[int]
    rights: array[int]

    @classmethod
    def listed(cls, lefts: Iterable[int], rights: Iterable[int], results: Iterable[int]) -> Merges:
        """Create merges whose priority is their index. A duplicate pair has its last index."""
        columns = [array("I", ids) for ids in (results, lefts, rights)]
        priorities = array("I", range(len(columns[0])))
        _, left, right = columns
        if len(set(zip(left, right, strict=True))) < len(priorities):
            last = dict(zip(zip(left, right, strict=True), priorities, strict=True))
            priorities = array("I", sorted(last.values()))
            columns = [array("I", (column[i] for i in priorities)) for column in columns]
        return cls(priorities, *columns)

    def pairs(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return a mapping from (left id, right id) to (priority, id of the result)."""
        both = zip(self.lefts, self.rights, strict=True)
        return dict(zip(both, zip(self.priorities, self.results, strict=True), strict=True))


@dataclass(frozen=True, slots=True)
class Scores:
    """Two adjacent parts merge if their concatenation is a token; the highest score first. Ids are
    looked up only afterwards, so parts that are not tokens can merge too.

    Attributes:
        scores: Id to score, for every token that merging can produce.
        taken_apart: Id to two parts, for tokens that merging can produce but text never becomes:
            each is replaced by its two parts, recursively.
    """

    scores: Mapping[int, float]
    taken_apart: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)


MergeRule = Ranks | Merges | Scores


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """Converts a piece to tokens; docs/formats.md defines the steps.

    Attributes:
        tokens: Token to id, one to one: raw bytes for the units "bytes", UTF-8 for "characters".
        rule: The rule of merging. Of several equal pairs, the leftmost merges first.
        units: The units that merging starts from.
        whole_first: Whether a piece that is a token becomes that token without merging.
        byte_tokens: Byte to id: a unit that is not a token becomes these if all its bytes have one.
        unknown: The id of any other unit that is not a token; None to drop such units.
        fuse_unknown: Whether adjacent unknown units become one token.
        prefix: Prepended to every unit except the first of a piece, for the lookup.
        suffix: Appended to the last unit of a piece, for the lookup.
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
    """A string that becomes a token wherever it occurs, before the model is applied.

    Attributes:
        content: The string to search for, not empty; already normalised if `normalised` is set.
        id: The id.
        special: Whether a request must allow it; otherwise it is always recognised.
        name: The name by which a request allows it: the content in the file.
        left_strip: Whether it includes the white space before it.
        right_strip: Whether it includes the white space after it.
        single_word: Whether it is recognised only if no word character is next to it.
        normalised: Whether it is searched in normalised text; otherwise in the original text.
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
    """Converts ids to bytes: the bytes of tokens are joined, with exceptions at the ends.

    Attributes:
        middle: Id to bytes, for every id.
        first: Id to bytes for the first token of a sequence, if they differ from `middle`.
        first_until_text: Whether a token counts as the first while all tokens before it decode to
            nothing.
        last: Id to bytes for the last token, if they differ from `middle`.
        only: Id to bytes for the only token, if they differ from `middle`.
        strip_start: A character to strip from the start, and the maximum number.
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
        """Whether the bytes of a token never depend on its position."""
        return not (
            self.first or self.last or self.only or self.strip_start[1] or self.strip_end[1]
        )

    def amid(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of tokens that are neither the first nor the last.

        Raises:
            UnknownTokenId: No token has one of the ids.
        """
        middle = self.middle
        parts = []
        for index, token_id in enumerate(map(operator.index, ids)):
            if token_id not in middle:
                raise UnknownTokenId(token_id, index)
            parts.append(middle[token_id])
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Template:
    """The ids that `add_special_tokens` puts before and after a text."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def around(self, ids: Iterable[int]) -> list[int]:
        """Return the ids of a text with those of the template around them."""
        return [*self.before, *ids, *self.after]


#: The empty template.
NO_TEMPLATE: Final = Template()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """A complete vocabulary.

    Attributes:
        model: Converts pieces to ids.
        decoder: Converts ids to bytes.
        normalisers: Applied in order to each stretch between the added tokens of the original
            text.
        pre_tokenizers: Applied in order to each stretch between all added tokens.
        added: The added tokens. Those with the same `normalised` have different contents.
        template: The ids that `add_special_tokens` puts around a text.
    """

    model: Model
    decoder: Decoder
    normalisers: tuple[Normaliser, ...] = ()
    pre_tokenizers: tuple[PreTokenizer, ...] = ()
    added: tuple[AddedToken, ...] = ()
    template: Template = NO_TEMPLATE
