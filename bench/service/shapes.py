"""The requests of the benchmark: RPCs and sizes, as bytes, with the right answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import bytepair_engine
from bytepair.v1 import text_pb2, tokenizer_pb2

from bench.service.text import prose

ENCODING = "cl100k_base"
TEXT_BYTES = (200, 1_000, 10_000, 100_000, 1_000_000)
BATCH_ITEMS, ITEM_BYTES = 64, 1_000
IDS = (250, 25_000)


@dataclass(frozen=True)
class Shape:
    """One kind of request.

    Attributes:
        name: For people.
        rpc: The RPC.
        message: The request's bytes.
        answer: The answer's bytes.
        body: The same request as JSON; None where the naive JSON service has none.
        units: How many texts one request is.
    """

    name: str
    rpc: str
    message: bytes
    answer: bytes
    body: bytes | None
    units: int = 1

    @property
    def framed(self) -> bytes:
        """The request as gRPC sends it."""
        return b"\0" + len(self.message).to_bytes(4, "big") + self.message


def shapes() -> list[Shape]:
    """Every shape, in the order of the table."""
    encoding = bytepair_engine.get_encoding(ENCODING)
    named: dict[str, Any] = {"encoding": encoding.name, "fingerprint": encoding.fingerprint}
    found = []
    for size in TEXT_BYTES:
        text = prose(size)
        ids = encoding.encode(text)
        body = json.dumps({"encoding": ENCODING, "text": text}).encode()
        found.append(
            Shape(
                f"Count {size:,} B",
                "Count",
                tokenizer_pb2.CountRequest(encoding=ENCODING, text=text).SerializeToString(),
                tokenizer_pb2.CountResponse(count=len(ids), **named).SerializeToString(),
                body,
            )
        )
        found.append(
            Shape(
                f"Encode {size:,} B",
                "Encode",
                tokenizer_pb2.EncodeRequest(encoding=ENCODING, text=text).SerializeToString(),
                tokenizer_pb2.EncodeResponse(ids=ids, **named).SerializeToString(),
                body,
            )
        )
    texts = [prose(ITEM_BYTES, start=index * ITEM_BYTES) for index in range(BATCH_ITEMS)]
    counts = [tokenizer_pb2.CountResult(count=encoding.count(text)) for text in texts]
    items = [text_pb2.TextItem(text=text) for text in texts]
    found.append(
        Shape(
            f"BatchCount {BATCH_ITEMS} × {ITEM_BYTES:,} B",
            "BatchCount",
            tokenizer_pb2.BatchCountRequest(encoding=ENCODING, items=items).SerializeToString(),
            tokenizer_pb2.BatchCountResponse(results=counts, **named).SerializeToString(),
            None,
            BATCH_ITEMS,
        )
    )
    for number in IDS:
        ids = encoding.encode(prose(number * 6))[:number]
        answer = tokenizer_pb2.DecodeResponse(text=encoding.decode(ids), **named)
        found.append(
            Shape(
                f"Decode {number:,} ids",
                "Decode",
                tokenizer_pb2.DecodeRequest(encoding=ENCODING, ids=ids).SerializeToString(),
                answer.SerializeToString(),
                None,
            )
        )
    return sorted(found, key=lambda shape: ("CEBD".index(shape.rpc[0]), len(shape.message)))
