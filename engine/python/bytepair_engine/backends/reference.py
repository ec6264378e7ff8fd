r"""The reference: byte-pair encoding in plain Python, written to be read.

This is the specification that the native core is tested against. It is deliberately simple and
slow: no cache and no heap.

The mathematics
===============

A *vocabulary* is an injective map V from non-empty byte strings, the *tokens*, to natural
numbers, their *ids*. Every single byte is a token. The id of a token is also its *rank*, its
position in the order of training. A *split pattern* is a regular expression. A table of *special
tokens* maps strings, which are outside V, to separate ids.

Encoding a text has three steps.

1. Find the special tokens that the caller allows: the leftmost match, and the longest of several
   that start at the same position. Each becomes its id. The text between them is ordinary text;
   the next two steps process each stretch of it separately.
2. Split each stretch into *pre-tokens*: the successive matches of the pattern, and the text
   between two matches as one more pre-token, so that no character is lost. A pattern with several
   lines is a sequence of splits: each one splits the pieces of the previous one.
3. Convert each pre-token into tokens. A pre-token that is a token becomes that token. Any other
   starts as its UTF-8 bytes, each one a part. A pair of adjacent parts *can merge* if their
   concatenation is a token; the rank of the pair is the rank of that token. While some pair can
   merge, merge the pair with the lowest rank, and the leftmost of several with that rank. The
   remaining parts are the tokens.

Why the answer exists and is unique. Step 3 makes each choice by a total order (rank, then
position), so it is a function. Every merge removes one part, so it ends after fewer merges than
there are bytes. Each remaining part is a token, because it is a single byte or the result of a
merge. Steps 1 and 2 are functions of the text by the rules of leftmost matching.

Why whole pre-tokens are looked up first. Merging the bytes of a token need not produce that
token: if "bc" and "abcd" are the only tokens of several bytes, then a b c d becomes a bc d and
stops. tiktoken returns "abcd" only if it is a whole pre-token, and published vocabularies depend
on this rule: Llama-3's has 588 such tokens. If the bytes of every token merge to that token, as
in all built-in encodings, the rule changes nothing and only saves time.

Why decoding inverts encoding. The concatenation of the parts never changes, so the joined bytes
of the tokens are the bytes of the text. The converse does not hold: many sequences of ids decode
to the same text, and encoding returns one of them. Nor is the encoding of a concatenation the
concatenation of the encodings, nor does a longer text always have more tokens.

A worked toy
============

Let V hold the 256 single bytes with their own value as id, and

    "aa" -> 256    "ab" -> 257    "aab" -> 258    " a" -> 259

and let the pattern be ` ?[a-z]+`. The text "aab aaab" splits into "aab" and " aaab".

    aab      a a b        pairs: aa 256, ab 257        merge aa
             aa b         pairs: aab 258               merge aab
             aab                                       -> 258

    " aaab"  _ a a a b    pairs: " a" 259, aa 256, aa 256, ab 257
                                                       merge the left aa
             _ aa a b     pairs: ab 257                merge ab ("aaa", " aa" are not tokens)
             _ aa ab                                   -> 32, 256, 257

>>> from bytepair_engine.toy import toy
>>> toy().encode("aab aaab")
[258, 32, 256, 257]

Sources: R. Sennrich, B. Haddow, A. Birch, "Neural Machine Translation of Rare Words with
Subword Units" (2016), for the merges; A. Radford et al., "Language Models are Unsupervised
Multitask Learners" (2019), for bytes and the split; tiktoken, for the rule of rank and for
special tokens.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import regex

from bytepair_engine import cancel
from bytepair_engine.backends.derived import DerivedBackend
from bytepair_engine.backends.interface import OffsetUnit
from bytepair_engine.errors import (
    InvalidUnicode,
    SpecialTokenFound,
    UnknownTokenId,
    wrong_type,
)
from bytepair_engine.vocabulary.fingerprint import fingerprint
from bytepair_engine.vocabulary.rank_table import RankTable


def split(text: str, pattern: str) -> list[str]:
    """Split `text` into pre-tokens.

    Args:
        text: Any text.
        pattern: A regular expression in the syntax of the `regex` package, or one per line, each
            applied to the pieces of the previous one.
    Returns:
        Non-empty pieces whose concatenation is `text`; [] for "".

    >>> split("ab, c", "[a-z]+")
    ['ab', ', ', 'c']
    """
    pieces = [text] if text else []
    for line in pattern.split("\n"):
        pieces = [part for piece in pieces for part in _isolate(piece, line)]
    return pieces


def _isolate(text: str, pattern: str) -> Iterator[str]:
    end = 0
    for match in regex.finditer(pattern, text):
        if match.end() == match.start():
            continue  # an empty match isolates nothing
        if match.start() > end:
            yield text[end : match.start()]
        yield match.group()
        end = match.end()
    if end < len(text):
        yield text[end:]


def merge(piece: bytes, ranks: Mapping[bytes, int], *, until: int = 1) -> list[bytes]:
    """Merge the bytes of one pre-token until no pair can merge.

    Args:
        piece: The pre-token's UTF-8.
        ranks: Token to rank, including every single byte.
        until: Stop at this number of parts: 2 returns the pair that a token is merged from.
    Returns:
        Tokens whose concatenation is `piece`; [] for b"".

    >>> merge(b"aaab", {b"a": 0, b"b": 1, b"aa": 2, b"ab": 3})
    [b'aa', b'ab']
    """
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > until:
        cancel.check()
        pairs = [(ranks.get(parts[i] + parts[i + 1]), i) for i in range(len(parts) - 1)]
        mergeable = [(rank, i) for rank, i in pairs if rank is not None]
        if not mergeable:
            break
        _, i = min(mergeable)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


class SpecialSet:
    """A set of strings to search for: the leftmost match, and the longest at a position."""

    def __init__(self, names: frozenset[str]) -> None:
        longest_first = sorted(names, key=len, reverse=True)
        self._any = regex.compile("|".join(map(regex.escape, longest_first))) if names else None

    def matches(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the start (in code points) and the string of each match, without overlaps."""
        if self._any is not None:
            yield from ((match.start(), match.group()) for match in self._any.finditer(text))

    def is_in(self, data: bytes) -> bool:
        return any(True for _ in self.matches(data.decode(errors="surrogateescape")))


class ReferenceBackend(DerivedBackend[SpecialSet]):
    """The three steps for one vocabulary; see `interface.Backend` for each method."""

    name: Final = "reference"
    splitter: Final = "regex"

    def __init__(self, table: RankTable, pattern: str, special_tokens: Mapping[str, int]) -> None:
        self._ranks = table.ranks
        self._pattern = pattern
        self._special_tokens = dict(special_tokens)
        self._bytes_of = {token_id: token for token, token_id in table.ranks.items()}
        # An id that several special tokens share decodes to the first by spelling.
        by_spelling = sorted((token.encode(), i) for token, i in special_tokens.items())
        self._bytes_of.update((i, token) for token, i in reversed(by_spelling))
        self.fingerprint = fingerprint(table.ranks, pattern, special_tokens)

    def special_set(self, names: frozenset[str]) -> SpecialSet:
        return SpecialSet(names)

    def _tokens(
        self, text: str, allowed: SpecialSet, disallowed: SpecialSet
    ) -> Iterator[tuple[int, bytes]]:
        cancel.check()
        check_unicode(text)
        for start, token in disallowed.matches(text):
            raise SpecialTokenFound(token, len(text[:start].encode()))
        end = 0
        for start, token in allowed.matches(text):
            yield from self._ordinary(text[end:start])
            yield self._special_tokens[token], token.encode()
            end = start + len(token)
        yield from self._ordinary(text[end:])

    def _ordinary(self, text: str) -> Iterator[tuple[int, bytes]]:
        for piece in split(text, self._pattern):
            cancel.check()
            data = piece.encode()
            for token in [data] if data in self._ranks else merge(data, self._ranks):
                yield self._ranks[token], token

    def encode(self, text: str, allowed: SpecialSet, disallowed: SpecialSet) -> list[int]:
        return [token_id for token_id, _ in self._tokens(text, allowed, disallowed)]

    def encode_with_offsets(
        self, text: str, unit: OffsetUnit, allowed: SpecialSet, disallowed: SpecialSet
    ) -> tuple[list[int], list[int]]:
        check_unicode(text)
        ids, offsets, start = [], [], 0
        units = _units_before_each_byte(text, unit)
        for token_id, token in self._tokens(text, allowed, disallowed):
            ids.append(token_id)
            offsets.append(units[start])
            start += len(token)
        return ids, offsets

    def decode_bytes(self, ids: Collection[int]) -> bytes:
        cancel.check()
        parts = []
        for index, token_id in enumerate(map(operator.index, ids)):
            token = self._bytes_of.get(token_id)
            if token is None:
                raise UnknownTokenId(token_id, index)
            parts.append(token)
        return b"".join(parts)

    def token_id(self, token: bytes) -> int | None:
        return self._ranks.get(token)

    def token_bytes(self, token_id: int) -> bytes | None:
        return self._bytes_of.get(token_id)

    def token_byte_values(self) -> list[bytes]:
        return sorted(self._ranks)


def check_unicode(text: str, index: int | None = None) -> None:
    """Raise InvalidUnicode if `text` holds a lone surrogate, which UTF-8 cannot encode, and
    TypeError if it is not a `str`."""
    if not isinstance(text, str):
        raise wrong_type("text", "str", text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidUnicode(len(text[: error.start].encode()), "lone surrogate", index) from None


def _units_before_each_byte(text: str, unit: OffsetUnit) -> list[int]:
    units: list[int] = []
    before = 0
    for character in text:
        width = len(character.encode())
        if unit == "byte":
            units.extend(range(before, before + width))
            before += width
        else:
            units.extend([before] * width)
            before += len(character.encode("utf-16-le")) // 2 if unit == "utf16" else 1
    return units
