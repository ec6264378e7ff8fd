"""tiktoken's rules for unstable tokens: those that more text or bytes at the end may change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import regex

from bytepair_engine.backends.reference import split

if TYPE_CHECKING:
    from bytepair_engine.tiktoken.core import Encoding

#: Tokens of only these bytes count as part of the last pre-token: later text may change them.
_SPACES = frozenset(b" \n\t")


def completions(
    encoding: Encoding, text: str, ids: list[int], allowed: AbstractSet[str]
) -> tuple[list[int], list[list[int]]]:
    """Split the ids of a text into stable ones and the possible replacements of the rest.

    Args:
        encoding: The encoding.
        text: The text.
        ids: The ids of the text.
        allowed: The special tokens that became their ids.
    Returns:
        The stable ids, and the sequences that may follow them, in no particular order.
    """
    last = _last_piece_tokens(encoding, text, ids, allowed)
    if last == 0:
        return ids, []
    stable, tail = ids[:-last], encoding.decode_bytes(ids[-last:])
    return stable, [list(found) for found in {tuple(ids) for ids in _tails(encoding, tail)}]


def encode_bytes(encoding: Encoding, data: bytes) -> list[int]:
    """Encode bytes. Those from the first invalid UTF-8 on are merged with the last pre-token."""
    try:
        return encoding.encode_ordinary(data.decode())
    except UnicodeDecodeError as error:
        text, rest = data[: error.start].decode(), data[error.start :]
    ids = encoding.encode_ordinary(text)
    last = _last_piece_tokens(encoding, text, ids, frozenset())
    stable, tail = ids[:-last], encoding.decode_bytes(ids[-last:])
    return stable + encoding._encode_single_piece(tail + rest)


def _last_piece_tokens(
    encoding: Encoding, text: str, ids: list[int], allowed: AbstractSet[str]
) -> int:
    """Return the number of ids of the last pre-token, and of spaces before it if it is spaces."""
    if allowed:
        by_length = sorted(allowed, key=len, reverse=True)
        text = regex.split("|".join(map(regex.escape, by_length)), text)[-1]
    if not text:
        return 0
    last = len(encoding._encode_single_piece(split(text, encoding._pat_str)[-1]))

    def is_space(token: int) -> bool:
        return _SPACES.issuperset(encoding.decode_single_token_bytes(token))

    if is_space(ids[-last]):
        while last < len(ids) and is_space(ids[-last - 1]):
            last += 1
    return last


def _tails(encoding: Encoding, tail: bytes) -> Iterator[list[int]]:
    tokens, ranks = encoding.token_byte_values(), encoding._mergeable_ranks

    def starting_with(prefix: bytes) -> Iterator[bytes]:
        for at in range(bisect_left(tokens, prefix), len(tokens)):
            if not tokens[at].startswith(prefix):
                return
            yield tokens[at]

    for token in starting_with(tail):
        yield [ranks[token]]
    for cut in range(1, len(tail)):
        for token in starting_with(tail[cut:]):
            yield _covering(encoding, tail[:cut] + token, len(tail))
    yield from _space_apart(encoding._encode_single_piece, tail)


def _covering(encoding: Encoding, data: bytes, length: int) -> list[int]:
    """Return the first ids of `data`, up to the one that covers byte `length`."""
    try:
        ids = encoding.encode_ordinary(data.decode())
    except UnicodeDecodeError:
        ids = encoding._encode_single_piece(data)
    covered = 0
    for count, token in enumerate(ids, 1):
        covered += len(encoding.decode_single_token_bytes(token))
        if covered >= length:
            return ids[:count]
    return ids


def _space_apart(merged: Callable[[bytes], list[int]], tail: bytes) -> Iterator[list[int]]:
    """Merge a final space separately from the rest: it may belong to the next pre-token."""
    last = tail.decode(errors="replace")[-1:]
    rest = tail[: len(tail) - len(last.encode())]
    if rest and last.isspace():
        yield merged(rest) + merged(last.encode())
