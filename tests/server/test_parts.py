"""What requests have of what costs by its number, however they are read."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.rpc.service import METHODS

TEXT, IDS = {"text": "a"}, {"ids": [1]}
SEGMENTS = {"segments": [{"text": "a"}, {}, {"special_token": "b"}]}


@pytest.mark.parametrize(
    ("rpc", "fields", "parts"),
    [
        ("Encode", TEXT, 0),
        ("Count", TEXT | {"allowed_special": ["a", "b"]}, 2),
        ("Count", SEGMENTS, 3),
        ("Encode", SEGMENTS | {"allowed_special": ["a"]}, 4),
        ("BatchEncode", {"items": [TEXT] * 5}, 5),
        ("BatchCount", {"items": [{}] * 5}, 5),
        ("BatchCount", {"items": [TEXT, SEGMENTS], "allowed_special": ["a"]}, 6),
        ("Decode", IDS, 0),
        ("BatchDecode", {"items": [IDS] * 5}, 5),
        ("ListEncodings", {}, 0),
        ("GetEncoding", {"encoding": "a"}, 0),
    ],
)
def test_parts(rpc: str, fields: dict[str, Any], parts: int) -> None:
    request = getattr(tokenizer_pb2, f"{rpc}Request")(**fields)
    method = METHODS[rpc]
    assert method.parts(method.read(request.SerializeToString())) == parts
