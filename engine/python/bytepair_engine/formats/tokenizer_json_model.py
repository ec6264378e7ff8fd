"""Read the model of a tokenizer.json: its vocabulary, merges and settings."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any, Final

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.merge_list import merges_of, without_prefix
from bytepair_engine.formats.tokenizer_json_steps import choice
from bytepair_engine.pipeline.byte_alphabet import read_bytes
from bytepair_engine.pipeline.definition import Merges, Model
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID

_BYTES: Final = 256


def read_vocabulary(node: Node) -> dict[str, int]:
    """Read the member `model.vocab`: spelling to id.

    Raises:
        VocabularyError: The model is not a BPE model, or an id is invalid or a duplicate.
    """
    kind = node.get("type")
    if kind is not None and kind.value != "BPE":
        kind.reject(f"models of type {kind.value!r} are not supported, only BPE")
    if kind is None and node.get("merges") is None:
        node.reject("it has neither a type nor merges; only models of type BPE are supported")
    member = node["vocab"]
    vocabulary: dict[str, Any] = member.a(dict)
    if not vocabulary:
        member.reject("it is empty")
    if set(map(type, vocabulary.values())) != {int}:
        token = next(t for t, i in vocabulary.items() if type(i) is not int)
        member.reject(f"the id of {_short(token)} is not an integer")
    if min(vocabulary.values()) < 0 or max(vocabulary.values()) > MAX_TOKEN_ID:
        token = next(t for t, i in vocabulary.items() if not 0 <= i <= MAX_TOKEN_ID)
        member.reject(f"the id of {_short(token)} is not within 0 and {MAX_TOKEN_ID}")
    try:
        "".join(vocabulary).encode()
    except UnicodeEncodeError:
        member.reject("a token holds a lone surrogate, which valid text never contains")
    if len(set(vocabulary.values())) != len(vocabulary):
        seen: dict[int, str] = {}
        for token, i in vocabulary.items():
            if (other := seen.setdefault(i, token)) != token:
                member.reject(f"{_short(other)} and {_short(token)} have one id, {i}")
    return vocabulary


def read_model(node: Node, vocabulary: Mapping[str, int], *, byte_level: bool) -> Model:
    """Read the member `model`, apart from its vocabulary.

    Args:
        node: The member.
        vocabulary: The vocabulary.
        byte_level: Whether tokens are bytes, each encoded as a character.
    Raises:
        VocabularyError: A token is not in the vocabulary, a byte-level merge contains a character
            that encodes no byte, or the model is not deterministic.
    """
    dropout = node.get("dropout")
    if dropout is not None and dropout.value != 0:
        dropout.reject("it skips merges at random, so ids would not be exact; set it to null")
    tokens = _tokens(vocabulary, byte_level=byte_level)
    prefix, suffix = (_affix(node, key, byte_level=byte_level) for key in _AFFIXES)
    whole = byte_level and not prefix and not suffix and _has_all_bytes(tokens)
    return Model(
        tokens=tokens,
        rule=_merges(node["merges"], vocabulary, len(prefix.encode()), byte_level=byte_level),
        units="bytes" if byte_level else "characters",
        whole_first=choice(node, "ignore_merges", default=False),
        # If every unit is a token, these are never used.
        byte_tokens={} if whole else _byte_tokens(node, vocabulary, byte_level=byte_level),
        unknown=None if whole else _unknown(node, vocabulary),
        fuse_unknown=not whole and choice(node, "fuse_unk", default=False),
        prefix=prefix,
        suffix=suffix,
    )


_AFFIXES: Final = ("continuing_subword_prefix", "end_of_word_suffix")


def _tokens(vocabulary: Mapping[str, int], *, byte_level: bool) -> dict[bytes, int]:
    if not byte_level:
        return {token.encode(): i for token, i in vocabulary.items()}
    written = ((read_bytes(token), i) for token, i in vocabulary.items())
    return {token: i for token, i in written if token is not None}


def _has_all_bytes(tokens: Mapping[bytes, int]) -> bool:
    return all(bytes([byte]) in tokens for byte in range(_BYTES))


def _affix(node: Node, key: str, *, byte_level: bool) -> str:
    member = node.get(key)
    if member is None:
        return ""
    affix = member.a(str)
    if byte_level and not affix.isascii():
        member.reject("it must be ASCII in a byte-level vocabulary")
    return affix


def _merges(node: Node, vocabulary: Mapping[str, int], prefix: int, *, byte_level: bool) -> Merges:
    """Read the merges, each as "left right" or ["left", "right"]."""
    halves = _halves(node)
    merges = merges_of(halves, vocabulary, prefix)
    if isinstance(merges, int):
        left, right = halves[2 * merges : 2 * merges + 2]
        name = left + without_prefix(right, prefix)
        missing = next(token for token in (left, right, name) if token not in vocabulary)
        node.reject(f"merge {merges} needs the token {_short(missing)}, which is not in vocab")
    if byte_level:
        _check_bytes(node, halves)
    return merges


def _halves(node: Node) -> list[str]:
    """Return the left and the right half of each merge, alternating.

    There are hundreds of thousands, so Python loops over them only to report an error.
    """
    members: list[Any] = node.a(list)
    if members and isinstance(members[0], str):
        if members[0].startswith("#version"):  # as in merges.txt
            members = members[1:]
        if {*map(type, members)} <= {str} and {*map(str.count, members, repeat(" "))} <= {1}:
            return list(chain.from_iterable(map(str.split, members, repeat(" "))))
        # Further version lines are skipped anywhere; both notations may be mixed.
        members = [m for m in members if not (isinstance(m, str) and m.startswith("#version"))]
        members = [m.split(" ") if isinstance(m, str) else m for m in members]
    parts = list(chain.from_iterable(m if type(m) is list else (m,) for m in members))
    if not ({*map(type, members)} <= {list} and {*map(len, members)} <= {2}) or not (
        {*map(type, parts)} <= {str}
    ):
        for priority, pair in enumerate(members):
            if not isinstance(pair, list) or len(pair) != 2 or {*map(type, pair)} != {str}:
                node.reject(f"merge {priority} is not two tokens: {_short(pair)}")
    return parts


def _check_bytes(node: Node, halves: list[str]) -> None:
    """Raise VocabularyError if a half of a merge has a character that encodes no byte. Other such
    tokens are accepted: they never match text, and only need to be decoded."""
    if read_bytes("".join(halves)) is None:
        index = next(i for i, half in enumerate(halves) if read_bytes(half) is None)
        character = next(c for c in halves[index] if read_bytes(c) is None)
        node.reject(
            f"merge {index // 2} contains {character!r}, which encodes no byte in a byte-level "
            "vocabulary"
        )


def _byte_tokens(node: Node, vocabulary: Mapping[str, int], *, byte_level: bool) -> dict[int, int]:
    if not choice(node, "byte_fallback", default=False):
        return {}
    if byte_level:
        node["byte_fallback"].reject("a byte-level vocabulary must have all 256 bytes instead")
    ids = ((byte, vocabulary.get(f"<0x{byte:02X}>")) for byte in range(_BYTES))
    return {byte: token_id for byte, token_id in ids if token_id is not None}


def _unknown(node: Node, vocabulary: Mapping[str, int]) -> int | None:
    member = node.get("unk_token")
    if member is None:
        return None
    if member.a(str) not in vocabulary:
        member.reject(f"the token {_short(member.value)} is not in model.vocab")
    return vocabulary[member.value]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
