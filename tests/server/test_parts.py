"""Requests with many small parts are counted correctly on every parsing path."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_server.admission.executor import NICE
from bytepair_server.rpc.handler import INLINE_MAX_PARTS
from bytepair_server.rpc.methods import METHODS
from conftest import Serve

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
        ("ListEncodings", {}, sys.maxsize),
        ("GetEncoding", {"encoding": "a"}, sys.maxsize),
    ],
)
def test_requests_of_many_parts_are_counted_correctly(
    rpc: str, fields: dict[str, Any], parts: int
) -> None:
    request = getattr(tokenizer_pb2, f"{rpc}Request")(**fields)
    method = METHODS[rpc]
    assert method.read(request.SerializeToString())[1] == parts


def thread_time(pid: int) -> int:
    """Return the CPU time in nanoseconds of the only thread that yields to the event loop."""
    own = os.getpriority(os.PRIO_PROCESS, pid)
    tasks = Path(f"/proc/{pid}/task").iterdir()
    [task] = [it for it in tasks if os.getpriority(os.PRIO_PROCESS, int(it.name)) == own + NICE]
    return int((task / "schedstat").read_text().split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of single threads are Linux's")
@pytest.mark.skipif(os.getpriority(os.PRIO_PROCESS, 0) > 0, reason="started with `nice`")
def test_a_small_request_of_many_parts_does_not_delay_others(serve: Serve) -> None:
    server = serve("--work-threads", "1")
    parts = [text_pb2.TextItem(text="a")] * INLINE_MAX_PARTS
    before = thread_time(server.pid)
    for items, goes_to_the_thread in ((parts, False), (parts + parts[:1], True)):
        server.stub.BatchCount(tokenizer_pb2.BatchCountRequest(encoding="cl100k_base", items=items))
        assert (thread_time(server.pid) > before) == goes_to_the_thread
