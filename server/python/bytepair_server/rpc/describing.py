"""Descriptions of encodings and tokens, for the RPCs that return them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from bytepair.v1 import encoding_pb2, token_pb2
from bytepair_engine import Encoding, UnknownTokenId
from bytepair_engine.context.boundaries import UNICODE_VERSION
from bytepair_engine.pipeline.derivation import flat
from bytepair_engine.pipeline.describing import Describer

from bytepair_server.catalog import Entry
from bytepair_server.errors import NoTokenWithId

#: Maximum bytes of a token whose merges are shown: their size grows with its square.
MAX_BYTES: Final = 1024

_KINDS: Final = {
    "token": token_pb2.TOKEN_KIND_ORDINARY,
    "byte": token_pb2.TOKEN_KIND_BYTE,
    "special": token_pb2.TOKEN_KIND_SPECIAL,
    "unknown": token_pb2.TOKEN_KIND_UNKNOWN,
}
_ORDERS: Final = {
    "rank": token_pb2.MERGE_ORDER_RANK,
    "priority": token_pb2.MERGE_ORDER_PRIORITY,
    "score": token_pb2.MERGE_ORDER_SCORE,
}


def encoding(entry: Entry) -> encoding_pb2.Encoding:
    """Describe an encoding for GetEncoding."""
    loaded = entry.encoding
    special = sorted(loaded.special_tokens.items(), key=lambda pair: (pair[1], pair[0]))
    template = loaded.template
    framing = list(zip(loaded.template_names, template.around(()), strict=True))
    return encoding_pb2.Encoding(
        name=entry.name,
        aliases=entry.aliases,
        fingerprint=entry.fingerprint,
        n_vocab=loaded.n_vocab,
        max_token_id=loaded.max_token_id,
        pattern=loaded.pattern,
        special_tokens=_tokens(special),
        source=_source_of(loaded),
        backend=loaded.backend,
        splitter=loaded.splitter,
        unicode_version=UNICODE_VERSION,
        template_before=_tokens(framing[: len(template.before)]),
        template_after=_tokens(framing[len(template.before) :]),
    )


def _source_of(loaded: Encoding) -> str:
    """Return the source, without the folder of a file: callers do not learn the server's paths."""
    kind, _, path = loaded.source.partition(":")
    return f"file:{Path(path).name}" if kind == "file" else loaded.source


@cache  # making one may read the whole vocabulary, and callers must not be able to repeat that
def _describer(entry: Entry) -> Describer:
    return Describer(entry.encoding)


def token(entry: Entry, token_id: int) -> token_pb2.GetTokenResponse:
    """Describe a token for GetToken."""
    describer = _describer(entry)
    try:
        found = describer.describe(token_id, max_bytes=MAX_BYTES)
    except UnknownTokenId:
        raise NoTokenWithId(entry.name, token_id) from None
    answer = token_pb2.GetTokenResponse(
        data=found.data,
        kind=_KINDS[found.kind],
        order=_ORDERS[describer.order_name],
        encoding=entry.name,
        fingerprint=entry.fingerprint,
    )
    sign = -1 if describer.order_name == "score" else 1
    for part, left, right in flat(found.parts):
        answer.parts.add(
            spelling=part.spelling,
            id=part.id,
            order=None if part.order is None else sign * part.order,
            left=left,
            right=right,
        )
    return answer


def _tokens(tokens: Iterable[tuple[str, int]]) -> list[encoding_pb2.SpecialToken]:
    return [encoding_pb2.SpecialToken(token=name, id=token_id) for name, token_id in tokens]
