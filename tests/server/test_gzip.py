"""Messages that are compressed with gzip, by every protocol."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from gzip import compress

import grpc
import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_server.config.settings import Settings
from bytepair_server.transport.interface import Limits
from support import http2
from support.plain_http import ask
from support.serving import START_SECONDS, RunningServer
from support.streaming import CountRequest, count_config

SERVICE = "/bytepair.v1.TokenizerService/"
FIRST, REST = b"one two three four", b" five six seven"
COUNT = 7


@pytest.fixture
def native(server: RunningServer, pytestconfig: pytest.Config) -> RunningServer:
    """The shared server, if it is this transport's."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("gRPC's own library inflates")
    return server


def bodies(content_type: str, rpc: str, more: bytes = b"") -> bytes:
    """A request whose text is in two members of gzip, and `more` after them."""
    if rpc == "Count":
        text = (FIRST + REST).decode()
        raw = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=text).SerializeToString()
        before = b""
    else:
        raw = CountRequest(text=(FIRST + REST).decode()).SerializeToString()
        before = http2.message(count_config().SerializeToString())
    members = compress(raw[: -len(REST)]) + compress(raw[-len(REST) :]) + more
    is_framed = "grpc" in content_type or "connect" in content_type
    return before + http2.message(members, compressed=True) if is_framed else members


@pytest.mark.parametrize(
    ("content_type", "rpc", "header"),
    [
        ("proto", "Count", "content_encoding"),
        ("grpc", "Count", "grpc_encoding"),
        ("grpc-web+proto", "Count", "grpc_encoding"),
        ("connect+proto", "CountStream", "connect_content_encoding"),
        ("grpc", "CountStream", "grpc_encoding"),
        ("grpc-web+proto", "CountStream", "grpc_encoding"),
    ],
)
def test_a_message_is_inflated_with_all_of_its_members_and_nothing_after_them(
    native: RunningServer, content_type: str, rpc: str, header: str
) -> None:
    fields = {"content_type": f"application/{content_type}", header: "gzip"}
    answer = ask(native.target, SERVICE + rpc, "POST", bodies(content_type, rpc), **fields)
    message = answer.body if content_type == "proto" else answer.body[5 : 5 + answer.body[4]]
    parse = tokenizer_pb2.CountResponse if rpc == "Count" else stream_pb2.CountStreamResponse
    assert parse.FromString(message).count == COUNT
    wrong = bodies(content_type, rpc, b"garbage")
    answer = ask(native.target, SERVICE + rpc, "POST", wrong, **fields)
    assert "request: the message cannot be inflated" in str(answer)


def test_the_message_in_a_query_inflates_to_little(native: RunningServer) -> None:
    """It is inflated before its call is admitted."""
    sizes = {1_000: 200, 1 << 20: 429}
    for size, status in sizes.items():
        request = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a " * (size // 2))
        message = urlsafe_b64encode(compress(request.SerializeToString())).decode()
        query = f"connect=v1&encoding=proto&compression=gzip&base64=1&message={message}"
        answer = ask(native.target, f"{SERVICE}Count?{query}")
        assert answer.status == status, answer


@pytest.mark.parametrize("rpc", ["Count", "CountStream"])
@pytest.mark.parametrize(("more", "status"), [(b"", "0"), (b"garbage", "3")])
def test_a_message_of_grpc_is_inflated_in_the_same_way(
    native: RunningServer, rpc: str, more: bytes, status: str
) -> None:
    headers = http2.headers(rpc, encoding="gzip")
    with http2.connection(native.target, seconds=START_SECONDS) as link:
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, headers))
        body = bodies("grpc", rpc, more)
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, body))
        assert http2.status(link) == status


def test_calls_that_were_admitted_leave_room_for_later_ones(server: RunningServer) -> None:
    """Compressed messages wait for admission, and only a few of one connection may."""
    text = " hello" * 100  # short messages are not compressed
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=text)
    for _ in range(Limits.of(Settings()).max_unread_calls + 1):
        assert server.stub.Count(request, compression=grpc.Compression.Gzip).count == 100
