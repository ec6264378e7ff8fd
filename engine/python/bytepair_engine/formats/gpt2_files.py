"""Read GPT-2's pair of files: vocab.bpe (or merges.txt) with the merges in order, and encoder.json
(or vocab.json) with the ids.

Both encode bytes as characters; see `byte_alphabet`.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

from bytepair_engine.errors import VocabularyError, has_surrogate
from bytepair_engine.formats.json_file import read_json
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET, read_bytes
from bytepair_engine.pipeline.definition import AddedToken, Decoder, Merges, Model, Pipeline, Split
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID

_ENCODER_REMEDY: Final = "check that this is encoder.json or vocab.json, and that it is complete"
_MERGES_REMEDY: Final = "fetch the original vocab.bpe or merges.txt"


def gpt2_pipeline(
    merges: bytes,
    encoder: bytes,
    pattern: str,
    special_tokens: Mapping[str, int],
    *,
    merges_source: str,
    encoder_source: str,
) -> Pipeline:
    """Read the two files.

    Args:
        merges: A "#version" line, then one line per merge in order of priority: two parts,
            separated by a space.
        encoder: A JSON object from token to id.
        pattern: The split pattern, resolved.
        special_tokens: The special tokens in `encoder`.
        merges_source: The name of the first file, for errors.
        encoder_source: The name of the second file, for errors.
    Returns:
        A pipeline that merges by the list. `as_ranks` converts it if merging by rank is equivalent.
    Raises:
        VocabularyError: A file is invalid, or the two do not match.
    """
    ids = _ids(encoder, encoder_source)
    pairs: dict[tuple[int, int], int] = {}  # pair to result, in order of priority
    known = set(BYTE_ALPHABET)
    for number, line in enumerate(_lines(merges, merges_source), 1):
        if number == 1:
            continue  # "#version: 0.2"

        def reject(problem: str, line: int = number) -> VocabularyError:
            return VocabularyError(merges_source, problem, _MERGES_REMEDY, line=line)

        parts = line.split(" ")
        if len(parts) != 2:
            raise reject("the line is not two parts separated by one space")
        for part in parts:
            if read_bytes(part) is None:
                unknown = next(c for c in part if c not in BYTE_ALPHABET)
                raise reject(f"{unknown!r} does not encode a byte")
            if part not in known:
                raise reject("a part is not a byte or an earlier merge")
        left, right = parts
        if left + right not in ids:
            raise reject(f"the merge gives {left + right!r}, which has no id in {encoder_source}")
        pair = (ids[left], ids[right])
        if pair in pairs:
            raise reject("an earlier line has the same pair")
        pairs[pair] = ids[left + right]
        known.add(left + right)
    for token in ids.keys() - known | special_tokens.keys():
        if ids.get(token) != special_tokens.get(token):
            raise VocabularyError(
                encoder_source,
                f"token {token!r}, which is not the result of a merge, has id {ids.get(token)} "
                f"here and {special_tokens.get(token)} in special_tokens",
                "declare in special_tokens exactly the tokens that are not results of merges",
            )
        if not token or has_surrogate(token):
            problem = f"special token {token!r} is empty or holds a lone surrogate"
            raise VocabularyError(encoder_source, problem, _ENCODER_REMEDY)
    tokens = {read_bytes(token) or b"": ids[token] for token in known}
    lefts, rights = (array("I", (pair[side] for pair in pairs)) for side in (0, 1))
    return Pipeline(
        model=Model(
            tokens=tokens, rule=Merges.listed(lefts, rights, pairs.values()), units="bytes"
        ),
        decoder=Decoder(
            middle={i: token for token, i in tokens.items()}
            | {i: token.encode() for token, i in special_tokens.items()}
        ),
        pre_tokenizers=tuple(Split(line) for line in pattern.split("\n")),
        added=tuple(
            AddedToken(content=token, id=i, special=True, name=token)
            for token, i in special_tokens.items()
        ),
    )


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
            "check that this is vocab.bpe or merges.txt, and set encoder_file to the ids",
            line=1,
        )
    return lines


def _ids(data: bytes, source: str) -> dict[str, int]:
    root = read_json(data, source, _ENCODER_REMEDY)
    ids = root.a(dict)
    seen: dict[int, str] = {}
    for token, token_id in ids.items():
        if type(token_id) is not int or not 0 <= token_id <= MAX_TOKEN_ID:
            root.reject(f"the id of {token[:80]!r} is not an integer from 0 to {MAX_TOKEN_ID}")
        if seen.setdefault(token_id, token) != token:
            root.reject(f"{seen[token_id][:80]!r} and {token[:80]!r} have one id, {token_id}")
    for character in BYTE_ALPHABET:
        if character not in ids:
            root.reject(f"the byte {character!r} has no id, so some text has no encoding")
    return ids
