"""Requests whose messages arrive in pieces, late or not at all."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from time import sleep

import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_server.config.settings import Settings
from bytepair_server.errors import RETRY_SECONDS
from bytepair_server.transport.interface import Limits
from conftest import Serve
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from support import http2
from support.keys import keys_toml, with_key
from support.serving import START_SECONDS
from support.slow import ENDLESS, SLOW_FLAGS, WITHOUT_CORE, endless_count

MIB = 1 << 20
LIMITS = Limits.of(Settings())
#: Bytes of messages that are read before admission (`UNADMITTED_BYTES` in server/src).
RESERVED_BYTES = 16 * MIB
KEY = "a key"
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")


def test_messages_in_pieces_are_put_together(serve: Serve) -> None:
    """Their prefixes too, and where a piece has the end of one and the beginning of the next."""
    server = serve()
    config = stream_pb2.CountStreamConfig(encoding="cl100k_base")
    first = stream_pb2.CountStreamRequest(config=config)
    texts = [stream_pb2.CountStreamRequest(text=text) for text in ("hello", " world")]
    sent = {
        "Count": http2.message(COUNT.SerializeToString()),
        "CountStream": b"".join(
            http2.message(each.SerializeToString()) for each in (first, *texts)
        ),
    }
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        for stream, (rpc, raw) in enumerate(sent.items()):
            number = 2 * stream + 1
            link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, number, http2.headers(rpc)))
            for start in range(0, len(raw), 3):
                link.sendall(http2.frame(http2.DATA, 0, number, raw[start : start + 3]))
            link.sendall(http2.frame(http2.DATA, http2.END_STREAM, number))
        answers: dict[int, bytes] = {}
        for kind, number, payload, _ in http2.frames(link):
            if kind == http2.DATA:
                answers[number] = payload
            if len(answers) == len(sent):
                break
    counts = [
        tokenizer_pb2.CountResponse.FromString(answers[1][5:]).count,
        stream_pb2.CountStreamResponse.FromString(answers[3][5:]).count,
    ]
    assert counts == [2, 2]


@pytest.mark.parametrize(("length", "compressed"), [(MIB, False), (100, True)])
def test_queued_large_calls_of_a_connection_are_limited_and_the_next_is_overloaded(
    serve: Serve, length: int, compressed: bool
) -> None:
    """A compressed message may be large, whatever its size is before."""
    flags = ("--transport", "native", "--max-in-flight", "1", "--max-queue-seconds", "60")
    server = serve(*SLOW_FLAGS, *flags, environment=WITHOUT_CORE)
    waiting = LIMITS.max_unread_calls
    said = http2.headers("Count", encoding="gzip")
    beginning = http2.message(b"", length=length, compressed=compressed)
    with endless_count(server), http2.connection(server.target, seconds=START_SECONDS) as link:
        for stream in range(1, 2 * (waiting + 1), 2):
            link.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, said)
                + http2.frame(http2.DATA, 0, stream, beginning)
            )
        refused: set[int] = set()
        fields: dict[bytes, bytes] = {}
        for kind, stream, payload, decoder in http2.frames(link):
            if kind == http2.HEADERS:
                refused.add(stream)
                fields |= dict(decoder.decode(payload, raw=True))
            if b"grpc-status-details-bin" in fields:  # in the trailers
                break
    assert refused == {2 * waiting + 1}
    assert server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED") == 1
    assert fields[b"grpc-status"] == b"8"
    encoded = fields[b"grpc-status-details-bin"]
    status = status_pb2.Status.FromString(b64decode(encoded + b"=" * (-len(encoded) % 4)))
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    assert any(each.Unpack(info) for each in status.details)
    assert any(each.Unpack(retry) for each in status.details)
    assert (info.reason, info.domain) == ("OVERLOADED", "bytepair")
    assert retry.retry_delay.ToTimedelta().total_seconds() == RETRY_SECONDS


@pytest.mark.parametrize("content_type", ["application/grpc", "application/proto"])
def test_messages_that_are_withheld_give_way_to_those_of_other_connections(
    serve: Serve, tmp_path: Path, content_type: str
) -> None:
    """Otherwise all others would have to be admitted before their messages are read, and few calls
    of a connection may wait for that. The one with a key is completed later, and answered."""
    (tmp_path / "keys.toml").write_text(keys_toml(known=KEY))
    keys = ("--transport", "native", "--api-keys-file", str(tmp_path / "keys.toml"))
    one_slot = ("--max-in-flight", "1", "--max-queue-seconds", "60")
    server = serve(*SLOW_FLAGS, *keys, *one_slot, environment=WITHOUT_CORE)
    endless = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=ENDLESS)
    many = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=" hello" * 3_000)
    slow = http2.count(" hello" * 10_900)
    slow = http2.message(slow) if content_type == "application/grpc" else slow
    size = f"{len(slow)}".encode()
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        blocking = server.stub.Count.future(endless, **with_key(KEY))
        server.wait_for_metric("bytepair_in_flight", 1)
        for number in range(RESERVED_BYTES // len(slow) + 1):
            sent, key = (slow[:9], "") if number else (slow[:16_000], KEY)
            said = http2.headers("Count", content_type=content_type, key=key)
            said += b"\0\x0econtent-length" + bytes((len(size),)) + size
            stream = 2 * number + 1
            link.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, said)
                + http2.frame(http2.DATA, 0, stream, sent)
            )
        sleep(1)  # much longer than they may arrive undisturbed
        calls = [
            server.stub.Count.future(many, **with_key(KEY))
            for _ in range(LIMITS.max_unread_calls + 10)
        ]
        server.wait_for_metric("bytepair_queued", len(calls) + 1)
        for start in range(16_000, len(slow), 16_000):
            link.sendall(http2.frame(http2.DATA, 0, 1, slow[start : start + 16_000]))
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1))
        blocking.cancel()
        assert {each.result().count for each in calls} == {3_000}
        field = "grpc-status" if content_type == "application/grpc" else ":status"
        assert http2.status(link, field=field) in ("0", "200")


@pytest.mark.parametrize(
    ("content_type", "field", "value"),
    [
        ("application/grpc", "grpc-status", "12"),
        ("application/connect+proto", ":status", "200"),
        ("application/grpc-web", ":status", "200"),
    ],
)
def test_an_unknown_rpc_is_answered_before_its_body_ends(
    serve: Serve, content_type: str, field: str, value: str
) -> None:
    """Reflection's clients do not end theirs before they have an answer."""
    server = serve("--transport", "native")
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        sent = http2.headers("NoSuch", content_type=content_type)
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, sent))
        link.sendall(http2.frame(http2.DATA, 0, 1, http2.message(b"a")))
        assert http2.status(link, field=field) == value
