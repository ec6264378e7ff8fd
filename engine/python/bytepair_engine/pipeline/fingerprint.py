"""The fingerprint of a form: one name for everything that decides ids and text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from struct import pack
from typing import Any

from bytepair_engine.pipeline.form import Form, Merges, Scores


def form_fingerprint(form: Form) -> str:
    """Hash a form: not its name, its file or its format.

    The hash runs over a text that can be read in one way only: "bytepair form 1\\n", and then
    fields, each its length in 8 bytes (little-endian) and its bytes. The fields are one for the
    steps and settings, in JSON with sorted keys, without spaces and in ASCII, where bytes are
    hexadecimal; and then each table, its name and its rows in order of their keys: tokens, byte
    tokens, the merge rule's, the decoder's four.

    Returns:
        "sha256:" and 64 hexadecimal digits.
    """
    digest = hashlib.sha256(b"bytepair form 1\n")
    for field in _fields(form):
        digest.update(pack("<Q", len(field)) + field)
    return f"sha256:{digest.hexdigest()}"


def _fields(form: Form) -> Iterator[bytes]:
    model, decoder, rule = form.model, form.decoder, form.model.rule
    settings = {
        "normalisers": [_step(step) for step in form.normalisers],
        "pre_tokenizers": [_step(step) for step in form.pre_tokenizers],
        "added": sorted((asdict(token) for token in form.added), key=_in_json),
        "template": asdict(form.template),
        "rule": type(rule).__name__,
        **{
            name: getattr(model, name)
            for name in ("units", "whole_first", "unknown", "fuse_unknown", "prefix", "suffix")
        },
        **{name: getattr(decoder, name) for name in ("strip_start", "strip_end")},
        "first_until_text": decoder.first_until_text,
    }
    yield _in_json(settings).encode()
    yield from _table("tokens", ((i, token) for token, i in model.tokens.items()))
    yield from _table("byte_tokens", model.byte_tokens.items())
    if isinstance(rule, Merges):
        yield from _table(
            "merges", ((priority, (*pair, i)) for pair, (priority, i) in rule.pairs.items())
        )
    elif isinstance(rule, Scores):
        yield from _table("scores", rule.scores.items())
        yield from _table("taken_apart", rule.taken_apart.items())
    for name in ("middle", "first", "last", "only"):
        yield from _table(name, getattr(decoder, name).items())


def _table(name: str, rows: Any) -> Iterator[bytes]:
    """The name, and the rows as their keys in 8 bytes and their values as fields."""
    ordered = sorted(rows)
    yield name.encode() + b" " + str(len(ordered)).encode()
    for key, value in ordered:
        yield pack("<Q", key) + (value if isinstance(value, bytes) else _in_json(value).encode())


def _step(step: Any) -> dict[str, Any]:
    return {"step": type(step).__name__, **asdict(step)}


def _in_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=bytes.hex)
