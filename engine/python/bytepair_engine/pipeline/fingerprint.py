"""The fingerprint of a form: one name for everything that decides ids and text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from operator import itemgetter
from struct import pack
from typing import Any

from bytepair_engine.pipeline.form import Form, Merges, Scores


def form_fingerprint(form: Form) -> str:
    """Hash a form: not its name, its file or its format.

    The hash runs over a text that can be read in one way only: "bytepair form 1\\n", and then
    fields, each its length in 8 bytes and its bytes; integers are little-endian. The first field
    is the steps and settings, in JSON with sorted keys, without spaces and in ASCII, where bytes
    are hexadecimal. Each table follows, in order of its keys: a field that names it, a field for
    each column of integers, in 4 bytes each, and for bytes a field of their lengths and one of
    all of them joined. Tables are the tokens, the byte tokens, the merge rule and the decoder's
    four.

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
    by_id = sorted((i, token) for token, i in model.tokens.items())
    yield from _table("tokens", *zip(*by_id, strict=True))
    yield from _table("byte_tokens", *zip(*sorted(model.byte_tokens.items()), strict=True))
    if isinstance(rule, Merges):
        pairs = sorted(rule.pairs.items(), key=itemgetter(1))  # each priority is there once
        left_right, priority_result = zip(*pairs, strict=True) if pairs else ((), ())
        columns = (zip(*rows, strict=True) for rows in (priority_result, left_right))
        yield from _table("merges", *chain.from_iterable(columns))
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
    for column in columns:
        if isinstance(column[0], bytes):
            yield pack(f"<{len(column)}I", *map(len, column))  # type: ignore[arg-type]
            yield b"".join(column)  # type: ignore[arg-type]
        else:
            yield pack(f"<{len(column)}I", *column)


def _step(step: Any) -> dict[str, Any]:
    return {"step": type(step).__name__, **asdict(step)}


def _in_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=bytes.hex)
