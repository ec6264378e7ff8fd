"""Which threads of a server give way to its event loop."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_server.rpc.handler import INLINE_MAX_PARTS
from bytepair_server.transport.priority import TRANSPORT, WORK
from conftest import Serve

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="priorities of single threads are Linux's"),
    pytest.mark.skipif(
        os.getpriority(os.PRIO_PROCESS, 0) > 0,
        reason="started with `nice`, from which threads cannot give way as far as they should",
    ),
]


def _nice(pid: int) -> Counter[int]:
    """By how much of `nice` the threads of a process give way to its first, the event loop."""
    own = os.getpriority(os.PRIO_PROCESS, pid)
    found = Counter[int]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            found[os.getpriority(os.PRIO_PROCESS, int(task.name)) - own] += 1
    return found


def test_the_loop_goes_before_grpc_and_grpc_before_large_texts(serve: Serve) -> None:
    server = serve("--work-threads", "1", "--inline-max-bytes", "1000")
    assert _nice(server.pid)[TRANSPORT] == 1
    assert _nice(server.pid)[WORK] == 0

    for size in (10, 1_000, 1_000_000):
        server.stub.Count(tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * size))

    assert _nice(server.pid)[TRANSPORT] == 1
    assert _nice(server.pid)[WORK] == 1


def test_a_small_request_of_many_parts_holds_nobody_up(serve: Serve) -> None:
    server = serve("--work-threads", "1")
    parts = [text_pb2.TextItem(text="a")] * INLINE_MAX_PARTS
    for items, threads in ((parts, 0), (parts + parts[:1], 1)):
        server.stub.BatchCount(tokenizer_pb2.BatchCountRequest(encoding="cl100k_base", items=items))
        assert _nice(server.pid)[WORK] == threads
