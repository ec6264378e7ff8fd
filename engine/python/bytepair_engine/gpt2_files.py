"""GPT-2's own pair of files: vocab.bpe, the merges, and encoder.json, the ids.

Both write a byte as a printable character; see `pipeline.byte_alphabet`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from bytepair_engine.errors import VocabularyError
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.reference import merge


def parse_gpt2_files(
    merges: bytes,
    encoder: bytes,
    special_tokens: Mapping[str, int],
    *,
    merges_source: str,
    encoder_source: str,
) -> list[tuple[bytes, int]]:
    """Recover (token, rank) pairs from the two files.

    Args:
        merges: vocab.bpe: a "#version" line, then a line for each merge, its two parts
            with a space between them, in order of rank.
        encoder: encoder.json: an object from token to id.
        special_tokens: The special tokens that encoder.json holds beside the ordinary ones.
        merges_source: The first file's name, for errors.
        encoder_source: The second file's name, for errors.
    Returns:
        Every ordinary token by rank.
    Raises:
        VocabularyError: A file is not what it must be, or the two do not agree: each merge
            must have the id that follows the one before it, as rank and id are one number
            here. Or a merge is not the last one that its token's bytes come to by rank: GPT-2
            applies only the merges that it lists, so that ids by rank could differ from its own.
    """
    ids = _parse_encoder(encoder, encoder_source)
    tokens = [bytes([byte]) for byte in BYTE_ALPHABET.values()]
    spellings = list(BYTE_ALPHABET)
    known = {token: rank for rank, token in enumerate(tokens)}
    for number, line in enumerate(_lines(merges, merges_source), 1):
        if number == 1:
            continue  # "#version: 0.2"
        parts = line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise _bad_merge(merges_source, number, "the line is not two parts and one space")
        try:
            left, right = (bytes(BYTE_ALPHABET[c] for c in part) for part in parts)
        except KeyError as error:
            raise _bad_merge(
                merges_source, number, f"{error.args[0]!r} stands for no byte"
            ) from None
        if left not in known or right not in known:
            raise _bad_merge(merges_source, number, "a part is not a byte or an earlier merge")
        if left + right in known:
            raise _bad_merge(merges_source, number, "the merge gives a token of an earlier line")
        known[left + right] = len(tokens)
        if merge(left + right, known, until=2) != [left, right]:
            raise _bad_merge(
                merges_source, number, "the two parts are not what their bytes merge to"
            )
        tokens.append(left + right)
        spellings.append("".join(parts))

    for rank, spelling in enumerate(spellings):
        if ids.get(spelling) != rank:
            raise VocabularyError(
                encoder_source,
                f"token {spelling!r} has id {ids.get(spelling)}, and its rank in "
                f"{merges_source} is {rank}",
                "use two files of one release of GPT-2",
            )
    ordinary = set(spellings)
    for token in ids.keys() - ordinary | special_tokens.keys():
        if ids.get(token) != special_tokens.get(token):
            raise VocabularyError(
                encoder_source,
                f"token {token!r}, which no merge makes, has id {ids.get(token)} here and "
                f"{special_tokens.get(token)} in special_tokens",
                "declare as special_tokens exactly the tokens that no merge makes",
            )
    return [(token, rank) for rank, token in enumerate(tokens)]


def _lines(data: bytes, source: str) -> list[str]:
    if not data:
        raise VocabularyError(source, "the file is empty", "fetch it again")
    try:
        lines = data.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise VocabularyError(
            source,
            "the line is not UTF-8",
            "fetch the original file",
            line=data.count(b"\n", 0, error.start) + 1,
        ) from None
    for number, line in enumerate(lines, 1):
        if line.endswith("\r"):
            raise VocabularyError(
                source,
                "the line ends in CR LF",
                "fetch the original file, or convert its line ends with dos2unix",
                line=number,
            )
    if not lines[0].startswith("#version"):
        raise VocabularyError(
            source,
            'the first line is not "#version: …"',
            "check that this is GPT-2's vocab.bpe, and give encoder.json as encoder_file",
            line=1,
        )
    return lines


def _parse_encoder(data: bytes, source: str) -> dict[str, int]:
    remedy = "check that this is GPT-2's encoder.json, and that it is whole"
    try:
        ids = json.loads(data, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise VocabularyError(source, error.msg, remedy, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise VocabularyError(source, str(error), remedy) from None
    if not isinstance(ids, dict) or not all(type(i) is int for i in ids.values()):
        raise VocabularyError(source, "it is not an object from token to id", remedy)
    if len(set(ids.values())) != len(ids):
        raise VocabularyError(source, "two tokens have one id", remedy)
    return ids


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a token stands twice")
    return unique


def _bad_merge(source: str, line: int, problem: str) -> VocabularyError:
    return VocabularyError(source, problem, "fetch the original vocab.bpe", line=line)
