"""The fingerprint of a pipeline: a hash of everything that determines ids and decoded text."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from operator import itemgetter
from struct import pack
from sys import byteorder
from typing import Any

from bytepair_engine.pipeline.definition import Merges, Pipeline, Scores


def pipeline_fingerprint(pipeline: Pipeline) -> str:
    """Hash the content of a pipeline, without its name, file or format.

    The hashed data are unambiguous: "bytepair form 1\\n", followed by fields, each as its length
    in 8 bytes and its bytes; integers are little-endian. The first field is JSON of the steps and
    settings: sorted keys, no spaces, ASCII, bytes in hexadecimal. Then come the tables, each sorted
    by its keys: a field with its name, a field for each column of integers (4 bytes each), and for
    a column of bytes a field with the lengths and one with the joined bytes. The tables are the
    tokens, the byte tokens, the merge rule and the four tables of the decoder.

    Returns:
        "sha256:" and 64 hexadecimal digits.
    """
    digest = hashlib.sha256(b"bytepair form 1\n")
    for field in _fields(pipeline):
        digest.update(pack("<Q", len(field)) + field)
    return f"sha256:{digest.hexdigest()}"


def _fields(pipeline: Pipeline) -> Iterator[bytes]:
    model, decoder, rule = pipeline.model, pipeline.decoder, pipeline.model.rule
    settings = {
        "normalisers": [_step(step) for step in pipeline.normalisers],
        "pre_tokenizers": [_step(step) for step in pipeline.pre_tokenizers],
        "added": sorted(map(_flat, pipeline.added), key=_in_json),
        "template": asdict(pipeline.template),
        "rule": type(rule).__name__,
        **{
            name: getattr(model, name)
            for name in ("units", "whole_first", "unknown", "fuse_unknown", "prefix", "suffix")
        },
        **{name: getattr(decoder, name) for name in ("strip_start", "strip_end")},
        "first_until_text": decoder.first_until_text,
    }
    yield _in_json(settings).encode()
    by_id = sorted(model.tokens.items(), key=itemgetter(1))
    yield from _table("tokens", [i for _, i in by_id], [token for token, _ in by_id])
    yield from _table("byte_tokens", *zip(*sorted(model.byte_tokens.items()), strict=True))
    if isinstance(rule, Merges):
        yield from _table("merges", rule.priorities, rule.results, rule.lefts, rule.rights)
    elif isinstance(rule, Scores):
        ids = sorted(rule.scores)
        scores = b"".join(pack("<d", rule.scores[i]) for i in ids)
        yield from _table("scores", ids, [scores])
        apart = sorted((i, *halves) for i, halves in rule.taken_apart.items())
        yield from _table("taken_apart", *zip(*apart, strict=True))
    for name in ("middle", "first", "last", "only"):
        yield from _table(name, *zip(*sorted(getattr(decoder, name).items()), strict=True))


def _table(name: str, *columns: Sequence[int] | Sequence[bytes]) -> Iterator[bytes]:
    yield name.encode()
    for column in filter(len, columns):
        if isinstance(column[0], bytes):
            yield _integers(map(len, column))  # type: ignore[arg-type]
            yield b"".join(column)  # type: ignore[arg-type]
        else:
            yield _integers(column)  # type: ignore[arg-type]


def _integers(column: Iterable[int]) -> bytes:
    integers = array("I", column)
    if byteorder == "big":
        integers.byteswap()
    return integers.tobytes()


def _step(step: Any) -> dict[str, Any]:
    return {"step": type(step).__name__, **_flat(step)}


def _flat(settings: Any) -> dict[str, Any]:
    """Return a flat dataclass as a dictionary, ten times faster than `asdict`."""
    return {member.name: getattr(settings, member.name) for member in fields(settings)}


def _in_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=bytes.hex)
