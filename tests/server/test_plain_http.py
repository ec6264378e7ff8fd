"""JSON by plain HTTP: what a person with curl sends, and mistakes."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from urllib.parse import quote

import pytest
from bytepair_server.rpc.json import MAX_BYTES
from conftest import Serve
from support.keys import keys_toml
from support.plain_http import ask
from support.serving import START_SECONDS, RunningServer, write_config

COUNT = "/bytepair.v1.TokenizerService/Count"
JSON = "application/json"


@pytest.fixture
def native(server: RunningServer, pytestconfig: pytest.Config) -> RunningServer:
    """The shared server, if its transport serves files."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio serves no files")
    return server


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"content_type": "application/x-www-form-urlencoded"},
        {"content_type": "text/plain;charset=UTF-8"},
        {"content_type": "Text/JSON"},
    ],
)
def test_a_call_of_another_content_type_is_told_the_one_to_send(
    native: RunningServer, sent: dict[str, str]
) -> None:
    for body in (b"", bytes(1_000_000)):  # the answer comes even before a large body is sent
        answer = ask(native.target, COUNT, "POST", body, **sent)
        assert answer.status == 415
        assert b"POST JSON with content-type: application/json" in answer.body


def test_the_paths_in_the_page_about_text_that_must_fit(native: RunningServer) -> None:
    page = (Path(__file__).parents[2] / "docs/context.md").read_text(encoding="utf-8")
    paths = re.findall(r"`(/bytepair\.v1\.\w+/(\w+))`", page)
    assert [rpc for _, rpc in paths] == ["Truncate", "Split", "Inspect"]
    for path, rpc in paths:
        fields = {} if rpc == "Inspect" else {"max_tokens": 1}
        body = json.dumps({"encoding": "cl100k_base", "text": "a b", **fields}).encode()
        answer = ask(native.target, path, "POST", body, content_type=JSON)
        assert answer.status == 200


@pytest.mark.parametrize("query", ["", "?encoding=gpt-4o&text=a"])
@pytest.mark.parametrize("sent", [{}, {"content_type": JSON}])
def test_a_get_without_a_message_is_told_to_post(
    native: RunningServer, sent: dict[str, str], query: str
) -> None:
    path = f"{COUNT}{query}"
    answer = ask(native.target, path, "GET", None, **sent)
    assert answer.status == 415
    assert b"POST JSON with content-type: application/json" in answer.body


def test_a_get_with_a_message_is_a_call_whose_answer_other_origins_cannot_read(
    native: RunningServer,
) -> None:
    page = (Path(__file__).parents[2] / "docs/transport.md").read_text(encoding="utf-8")
    [documented] = re.findall(r"`(\?[^`]*)<JSON>`", page)
    message = quote(json.dumps({"encoding": "cl100k_base", "text": "hello world"}))
    answer = ask(native.target, f"{COUNT}{documented}{message}", origin="https://other.example")
    assert (answer.status, json.loads(answer.body)["count"]) == (200, "2")
    assert "access-control-allow-origin" not in answer.headers


def test_another_http_method_is_told_to_post(native: RunningServer) -> None:
    answer = ask(native.target, COUNT, "PUT", b"{}")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
    assert b"POST JSON with content-type: application/json" in answer.body


@pytest.mark.parametrize("path", ["/", "/v1/completions", "/bytepair.v1.TokenizerService/"])
def test_json_to_a_wrong_path_is_told_the_form_of_one(native: RunningServer, path: str) -> None:
    answer = ask(native.target, path, "POST", b"{}", content_type=JSON)
    assert (answer.status, answer.headers["content-type"]) == (404, JSON)
    message = json.loads(answer.body)["message"]
    assert "proto/bytepair/v1, such as" in message
    assert "/bytepair.v1.ChatService/CountChat" in message


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/v1/count", COUNT),
        ("/bytepair.v1.TokenizerService/count", COUNT),
        ("/bytepair.v1.TokenizerService/Count/", COUNT),
        ("/bytepair.v1.TokenizerService/CountTokens", COUNT),
        ("/bytepair.v1.TokenizerService/Cuont?a=b", COUNT),
        ("/bytepair.v1.TokenizerService/CountChat", "/bytepair.v1.ChatService/CountChat"),
        ("/bytepair.v1.Tokenizer/BatchDecode", "/bytepair.v1.TokenizerService/BatchDecode"),
    ],
)
def test_json_to_a_wrong_path_is_told_the_nearest_one(
    native: RunningServer, path: str, nearest: str
) -> None:
    answer = ask(native.target, path, "POST", b"{}", content_type=JSON)
    assert (answer.status, answer.headers["content-type"]) == (404, JSON)
    message = json.loads(answer.body)["message"]
    assert message == f"no RPC has this path: the nearest is {nearest}"


def test_json_is_called_so_in_any_case_and_zeros_are_written(native: RunningServer) -> None:
    body = b'{"encoding": "cl100k_base"}'
    answer = ask(native.target, COUNT, "POST", body, content_type="Application/JSON; charset=UTF-8")
    assert answer.status == 200
    assert json.loads(answer.body)["count"] == "0"


@pytest.mark.parametrize(
    ("body", "offset"), [(b'{"text": "\xff"}', "10"), ('{"text": "a"}'.encode("utf-16"), "0")]
)
def test_json_that_is_not_utf8_is_told_where(
    native: RunningServer, body: bytes, offset: str
) -> None:
    answer = ask(native.target, COUNT, "POST", body, content_type=JSON)
    assert answer.status == 400
    assert f"request is not UTF-8 at byte {offset}".encode() in answer.body
    assert b"INVALID_UTF8" in answer.body


@pytest.mark.parametrize("timeout", ["abc", "-1", "99999999999"])
def test_a_timeout_that_cannot_be_read_is_rejected(native: RunningServer, timeout: str) -> None:
    body = b'{"encoding": "cl100k_base"}'
    sent = {"content_type": JSON, "connect_timeout_ms": timeout}
    answer = ask(native.target, COUNT, "POST", body, **sent)
    assert answer.status == 400
    assert b"connect-timeout-ms: must be milliseconds" in answer.body


@pytest.mark.parametrize("rpc", ["EncodeStream", "DecodeStream", "CountStream", "SplitStream"])
def test_a_stream_of_json_is_told_the_form_to_send(native: RunningServer, rpc: str) -> None:
    path = f"/bytepair.v1.TokenizerService/{rpc}"
    answer = ask(native.target, path, "POST", content_type="application/connect+json")
    assert b"send Protocol Buffers" in answer.body


@pytest.mark.parametrize("content_type", [JSON, "application/proto"])
@pytest.mark.parametrize(
    "path",
    ["/bytepair.v1.TokenizerService/EncodeStream", "/grpc.health.v1.Health/Watch"],
)
def test_a_stream_by_the_content_type_of_a_unary_call_is_rejected(
    native: RunningServer, path: str, content_type: str
) -> None:
    """It would wait for its messages for ever. Health needs no credentials, and its limit counts
    only watches that have begun."""
    answer = ask(native.target, path, "POST", b"{}", content_type=content_type)
    assert answer.status == 400
    assert b"this RPC is a stream: send Protocol Buffers" in answer.body


def test_a_request_that_is_never_read_is_told_the_limit_of_json(native: RunningServer) -> None:
    length = str(4 * MAX_BYTES)
    answer = ask(native.target, COUNT, "POST", b"{}", content_type=JSON, content_length=length)
    assert answer.status == 400
    said = f"bytes of JSON, and this server accepts at most {MAX_BYTES}"
    assert said in json.loads(answer.body)["message"]


@pytest.mark.slow
def test_a_call_over_its_quota_has_the_header_retry_after(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(keys_toml(once="key"))
    config = """
        api_keys_file = "keys.toml"
        cors_origins = ["https://a.example"]
        [quotas.once]
        requests_per_second = 0.001
        request_burst = 1
    """
    server = serve("--transport", "native", "--config", write_config(tmp_path, config))
    sent = {"content_type": JSON, "authorization": "Bearer key", "origin": "https://a.example"}
    answers = [ask(server.target, COUNT, "POST", b"{}", **sent) for _ in range(3)]
    assert answers[-1].status == 429
    assert 900 < int(answers[-1].headers["retry-after"]) <= 1000
    assert "retry-after" in answers[-1].headers["access-control-expose-headers"]
    assert answers[-1].headers["vary"] == "origin"  # so that no cache gives it to another page


def test_a_body_that_breaks_off_is_not_an_error_of_the_server(native: RunningServer) -> None:
    host, _, port = native.target.rpartition(":")
    head = f"POST {COUNT} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=START_SECONDS) as link:
        link.sendall(f"{head}content-length: 100\r\n\r\n".encode() + b'{"text": ')
        link.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: link.recv(1 << 12), b""))
    assert answer.startswith(b"HTTP/1.1 499 ")
    assert b"the request cannot be read: the caller is gone" in answer


def test_a_compressed_body_that_stalls_fails_at_its_timeout(native: RunningServer) -> None:
    host, _, port = native.target.rpartition(":")
    head = (
        f"POST {COUNT} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        "content-encoding: gzip\r\nconnect-timeout-ms: 300\r\ncontent-length: 100\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=START_SECONDS) as link:
        link.sendall(head.encode() + b"\x1f\x8b")
        answer = link.recv(1 << 12)
        while b"deadline_exceeded" not in answer and (more := link.recv(1 << 12)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"deadline_exceeded" in answer
