"""Inputs that broke other services, over the wire, each with its source.

Numbers are issues or pull requests of the other project. Hazards of the engine are in its own
test_hazards.py, those of special tokens in test_untrusted_text.py.
"""

from __future__ import annotations

import asyncio
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_client._options import DEFAULT_KEEPALIVE_S
from bytepair_server import catalog
from bytepair_server.catalog import SelfTestFailed
from bytepair_server.config import loader
from bytepair_server.observability import logs
from bytepair_server.rpc.service import SERVICE_NAME
from bytepair_server.server import Server
from bytepair_server.transport.grpcio import MIN_PING_INTERVAL_MS
from conftest import Serve
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.failures import read
from support.oracle import oracle
from support.serving import (
    START_SECONDS,
    RunningServer,
    clean_environment,
    command,
)
from support.slow import SLOW_FLAGS, WITHOUT_CORE, endless_count
from support.streaming import (
    CountRequest,
    DecodeRequest,
    answers_of,
    count_config,
    decode_config,
)

AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
MIB = 1 << 20


def ids_of(server: RunningServer, text: str, encoding: str = "cl100k_base") -> list[int]:
    request = tokenizer_pb2.EncodeRequest(encoding=encoding, text=text, disallowed_special=AS_TEXT)
    return list(server.stub.Encode(request).ids)


# Cost and crashes


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * MIB, id="tiktoken #327: 1 MiB was a stack overflow"),
        pytest.param("^" * MIB, id="tiktoken #15, #245: PanicException"),
        pytest.param(" " * (MIB - 1) + "x", id="tiktoken #258: panic"),
        pytest.param("and <number>/", id="vLLM #56569: the connection was killed"),
        pytest.param("\ufffd", id="deepseek-recipe #16: dropped"),
    ],
)
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_a_text_that_crashed_another_server_is_answered_and_so_is_the_next(
    server: RunningServer, name: str, text: str
) -> None:
    ids = ids_of(server, text, name)
    assert bytepair_engine.get_encoding(name).decode(ids) == text
    counted = server.stub.Count(tokenizer_pb2.CountRequest(encoding=name, text=text))
    assert counted.count == len(ids)
    assert ids_of(server, "hello", name) == oracle(name).encode("hello")


def test_health_and_small_calls_are_answered_while_a_large_one_is_computed(serve: Serve) -> None:
    """LiteLLM #26193, SGLang #30771, vLLM #10635: texts were encoded on the event loop, probes
    timed out and the pods were killed."""
    flags = (*SLOW_FLAGS, "--work-threads", "2")
    server = serve(*flags, environment=WITHOUT_CORE)
    small = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
    health: Any = health_pb2_grpc.HealthStub(server.channel)
    with endless_count(server) as running:
        status = health.Check(health_pb2.HealthCheckRequest()).status
        assert status == health_pb2.HealthCheckResponse.SERVING
        assert server.get("/healthz")[0] == 200
        assert server.stub.Count(small).count == 2
        assert not running.done()


@pytest.mark.slow
def test_a_message_of_a_stream_that_decompresses_far_beyond_the_limit_is_rejected(
    server: RunningServer,
) -> None:
    """tonic #2484, grpc #41996: limiting only the compressed size is no limit. test_limits.py tests
    unary calls."""
    bomb = [count_config(), CountRequest(text=" a" * (32 * MIB))]
    with pytest.raises(grpc.RpcError) as caught:
        server.stub.CountStream(iter(bomb), compression=grpc.Compression.Gzip)
    assert read(caught.value).reason == "INPUT_TOO_LARGE"
    assert ids_of(server, "hello") == [15339]


# Streaming decode

SMILES = "🙂🙂"
STREAMS = [
    pytest.param("gpt2", list(SMILES.encode()), {}, [*SMILES], id="Dynamo #12630"),
    pytest.param("gpt2", list("삼겹살".encode()), {}, [*"삼겹살"], id="Dynamo #12688"),
    pytest.param(
        "gpt2",
        list("a\ufffdb".encode()),
        {},
        ["a", "\ufffd", "b"],
        id="deepseek-recipe #16, Luce #489",
    ),
    pytest.param(
        "gpt2",
        list("ok🙂".encode()[:-1]),
        {},
        ["o", "k", "\ufffd"],
        id="lattice #751, Camelid #288",
    ),
    pytest.param("cl100k_base", [b"\x20\xf0\x9f\x91", 0x8D], {}, [" ", "👍"], id="mlc-llm #2978"),
    pytest.param(
        "gpt2",
        list(b"ABCDEFGHIJKLM"),
        {"stop": ["DEFGHIJ"]},
        ["A", "B", "C"],
        id="vLLM #3574, SwiftLM #126, sgl-model-gateway #2203",
    ),
    pytest.param(
        "gpt2",
        list(b"ABCDEFGHI?"),
        {"stop": ["DEFGHIJ"]},
        ["A", "B", "C", "DEFGHI?"],
        id="sgl-model-gateway #2203: text held for ever",
    ),
    pytest.param("gpt2", list(b"  a"), {}, [" ", " ", "a"], id="tokenizers #2212, mlx-lm #1754"),
]


@pytest.mark.parametrize(("name", "units", "options", "deltas"), STREAMS)
def test_streamed_deltas_of_ids_that_broke_other_servers(
    server: RunningServer, name: str, units: list[Any], options: Any, deltas: list[str]
) -> None:
    """Each message has one id, of a byte or of a token."""
    encoding = bytepair_engine.get_encoding(name)
    ids = [
        encoding.encode_single_token(bytes([unit]) if isinstance(unit, int) else unit)
        for unit in units
    ]
    messages = [decode_config(name, **options), *(DecodeRequest(ids=[each]) for each in ids)]
    answers, failed = answers_of(server.stub.DecodeStream, messages)
    assert failed is None
    assert [answer.text for answer in answers if answer.text] == deltas
    stopped = answers[-1].stop_matched
    assert answers[-1].tokens_consumed == (10 if stopped else len(ids))


def test_a_repeated_id_of_an_incomplete_character_is_not_held_back(server: RunningServer) -> None:
    """SGLang #34740: gpt2's id 100 gave no text, and each repetition looked further back."""
    token = bytepair_engine.get_encoding("gpt2").decode_single_token_bytes(100)
    messages = [decode_config("gpt2"), *(DecodeRequest(ids=[100]) for _ in range(500))]
    answers, failed = answers_of(server.stub.DecodeStream, messages)
    assert failed is None
    assert max(answer.pending_bytes for answer in answers) <= 3
    assert "".join(answer.text for answer in answers) == (token * 500).decode(errors="replace")


# gRPC in Python


@pytest.mark.slow
def test_two_servers_do_not_share_a_port(server: RunningServer) -> None:
    """grpc #28867: with SO_REUSEPORT each server silently gets some of the connections."""
    ended = subprocess.run(
        command("--grpc-address", server.target, "--http-address", "none"),
        env=clean_environment(GRPC_VERBOSITY="NONE"),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert f"grpc_address {server.target}: cannot listen" in ended.stderr


@pytest.mark.slow
def test_metrics_ignore_the_multi_process_variable_of_prometheus(tmp_path: Path) -> None:
    """PROMETHEUS_MULTIPROC_DIR alone turns on the multi-process mode. It breaks Info, Enum and
    custom collectors, and keeps the files of former processes."""
    variables = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    flags = ("--builtin-encodings", "cl100k_base")
    with RunningServer(*flags, environment=variables) as server:
        assert ids_of(server, "hello") == [15339]
        assert server.metric("bytepair_requests_total", rpc="Encode", code="OK") == 1
        assert server.metric("bytepair_encoding_info", encoding="cl100k_base") == 1
        assert server.metric("bytepair_ready") == 1
        assert server.metric("bytepair_in_flight") == 0
    assert not list(tmp_path.iterdir())  # files outlive a process, whose id may be reused


def test_health_is_not_serving_if_the_self_test_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The health servicer of grpcio-health-checking starts as SERVING, and would stay so."""
    monkeypatch.setattr(catalog, "SELF_TEST_IDS", {"r50k_base": (1, 2, 3)})
    flags = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"]
    flags += ["--builtin-encodings", "r50k_base", "--allow-reference-backend"]

    async def run() -> None:
        server = Server(loader.load(flags, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        try:
            with pytest.raises(SelfTestFailed, match="r50k_base"):
                await server.load()
            async with grpc.aio.insecure_channel(server.grpc_address) as channel:
                health: Any = health_pb2_grpc.HealthStub(channel)
                for service in ("", SERVICE_NAME):
                    answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
                    assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        finally:
            await server.stop()

    asyncio.run(run())


def test_the_client_s_keepalive_pings_stay_within_the_server_s_limit() -> None:
    """gRPC's default limit is one in five minutes. A connection that pings more often is closed
    with too_many_pings."""
    assert DEFAULT_KEEPALIVE_S * 1000 >= 2 * MIN_PING_INTERVAL_MS
