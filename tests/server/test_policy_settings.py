"""The operator's policy settings: groups, the floor, metrics and logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bytepair.v1 import chat_pb2, chat_pb2_grpc, text_pb2, tokenizer_pb2
from bytepair_server.observability.logs import MAX_DENIALS
from conftest import Serve
from support.failures import failure
from support.keys import keys_toml, with_key
from support.serving import RunningServer, write_config
from support.streaming import EncodeRequest, answers_of, encode_config

pytestmark = pytest.mark.slow  # it starts servers for few tests

END, FIM, PREFIX = "<|endoftext|>", "<|fim_suffix|>", "<|fim_prefix|>"
AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
CALLERS = ("alone", "grouped", "both", "stranger", "none")
CONFIG = f"""
api_keys_file = "keys.toml"
log_denials = true
builtin_encodings = ["cl100k_base", "p50k_edit"]
[callers.grouped]
group = "chats"
[callers.both]
group = "chats"
[ceiling.default]
cl100k_base = ["{PREFIX}"]
[ceiling.chats]
cl100k_base = ["{END}"]
[ceiling.both]
p50k_edit = ["{FIM}"]
[ceiling.none]
cl100k_base = []
"""


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with the ceilings above that logs denials. Each caller's key is its name."""
    folder = tmp_path_factory.mktemp("groups")
    (folder / "keys.toml").write_text(keys_toml(**{name: name for name in CALLERS}))
    with RunningServer("--config", write_config(folder, CONFIG)) as running:
        yield running


def may_use(server: RunningServer, caller: str, encoding: str) -> set[str]:
    """Return the special tokens that a caller may use."""
    found = set()
    for token in (END, FIM, PREFIX):
        request = tokenizer_pb2.BatchEncodeRequest(encoding=encoding)
        request.items.add(segments=[text_pb2.Segment(special_token=token)])
        answer = server.stub.BatchEncode(request, **with_key(caller))
        if not answer.results[0].HasField("error"):
            found.add(token)
    return found


@pytest.mark.parametrize(
    ("caller", "cl100k", "p50k"),
    [
        ("alone", {PREFIX}, set()),
        ("grouped", {END}, set()),
        ("both", {END}, {FIM}),
        ("stranger", {PREFIX}, set()),
        ("none", set(), set()),
    ],
)
def test_a_ceiling_comes_from_the_caller_then_its_group_then_the_default(
    grouped: RunningServer, caller: str, cl100k: set[str], p50k: set[str]
) -> None:
    assert may_use(grouped, caller, "cl100k_base") == cl100k
    assert may_use(grouped, caller, "p50k_edit") == p50k


def test_policy_outcomes_are_counted_per_caller(grouped: RunningServer) -> None:
    def counted(action: str) -> dict[str, float]:
        labels = {"rpc": "Count", "encoding": "cl100k_base", "action": action}
        return {
            caller: grouped.metric("bytepair_policy_total", caller=caller, **labels)
            for caller in CALLERS
        }

    before = {action: counted(action) for action in ("allowed", "denied")}
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", allowed_special=[END])
    grouped.stub.Count(request, **with_key("grouped"))
    failure(grouped.stub.Count, request, **with_key("stranger"))
    failure(grouped.stub.Count, request, metadata=[("authorization", "Bearer name-of-nobody")])
    after = {action: counted(action) for action in ("allowed", "denied")}
    gained = {
        action: [caller for caller in CALLERS if after[action][caller] > before[action][caller]]
        for action in after
    }
    assert gained == {"allowed": ["grouped"], "denied": ["stranger"]}
    assert "name-of-nobody" not in grouped.get("/metrics")[1]


def test_a_denial_is_logged_with_its_token_and_without_text(grouped: RunningServer) -> None:
    secret = "my secret text"
    asked = tokenizer_pb2.CountRequest(encoding="gpt-4", text=secret, allowed_special=[FIM])
    failed = failure(grouped.stub.Count, asked, **with_key("stranger", "asks"))
    assert failed.metadata == {"token": FIM, "encoding": "cl100k_base"}
    line = grouped.wait_for_log("denied", request_id="asks")
    assert line.pop("peer").startswith("ipv4:127.0.0.1:")
    assert line.pop("timestamp")
    assert line == {
        "event": "denied",
        "level": "warning",
        "rpc": "Count",
        "caller": "stranger",
        "encoding": "cl100k_base",
        "reason": "SPECIAL_TOKEN_NOT_PERMITTED",
        "why": "",
        "token": FIM,
        "format": "",
        "request_id": "asks",
    }

    spelt = tokenizer_pb2.EncodeRequest(encoding="gpt-4", text=f"{secret}{FIM}")
    failure(grouped.stub.Encode, spelt, **with_key("stranger", "spells"))
    line = grouped.wait_for_log("denied", request_id="spells")
    assert (line["reason"], line["token"]) == ("SPECIAL_TOKEN_IN_TEXT", FIM)

    # The text of a token field may be user text by mistake.
    swapped = tokenizer_pb2.EncodeRequest(encoding="gpt-4")
    swapped.segments.add(special_token=secret)
    failure(grouped.stub.Encode, swapped, **with_key("stranger", "swaps"))
    assert grouped.wait_for_log("denied", request_id="swaps")["token"] == ""

    batch = tokenizer_pb2.BatchEncodeRequest(encoding="gpt-4")
    batch.items.add(text=secret)
    batch.items.add(text=f"{secret}{END}")
    batch.items.add(text=f"{secret}{FIM}")
    grouped.stub.BatchEncode(batch, **with_key("stranger", "in-batch"))
    assert grouped.wait_for_log("denied", request_id="in-batch")["token"] == END

    asked_format = chat_pb2.EncodeChatRequest(encoding="gpt-4", format="chatml")
    chats: Any = chat_pb2_grpc.ChatServiceStub(grouped.channel)  # type: ignore[no-untyped-call]
    failure(chats.EncodeChat, asked_format, **with_key("stranger", "format"))
    line = grouped.wait_for_log("denied", request_id="format")
    assert (line["reason"], line["format"]) == ("CHAT_FORMAT_NOT_PERMITTED", "chatml")

    failure(
        grouped.stub.Count, asked, metadata=[("authorization", "Bearer x"), ("x-request-id", "who")]
    )
    line = grouped.wait_for_log("denied", request_id="who")
    assert (line["reason"], line["caller"]) == ("UNAUTHENTICATED", "")
    assert secret not in grouped.raw_log


def test_the_denials_of_a_caller_are_logged_up_to_a_number_a_minute(
    grouped: RunningServer,
) -> None:
    asked = tokenizer_pb2.CountRequest(encoding="gpt-4", allowed_special=[FIM])
    for number in range(MAX_DENIALS + 10):
        failure(grouped.stub.Count, asked, **with_key("alone", f"alone-{number}"))
    failure(grouped.stub.Count, asked, **with_key("both", "of-another"))
    grouped.wait_for_log("denied", request_id="of-another")
    lines = [
        line
        for line in grouped.log
        if line["event"] == "denied" and line["request_id"].startswith("alone-")
    ]
    assert len(lines) <= MAX_DENIALS
    assert ["hint" in line for line in lines] == [False] * (len(lines) - 1) + [True]


def test_denials_are_not_logged_by_default(serve: Serve) -> None:
    server = serve()
    failure(
        server.stub.Encode,
        tokenizer_pb2.EncodeRequest(encoding="gpt-4", text=END),
        metadata=[("x-request-id", "last")],
    )
    server.wait_for_log("call", request_id="last")
    assert "denied" not in [line["event"] for line in server.log]


def test_a_floor_of_reject_applies_in_every_rpc(serve: Serve) -> None:
    """It overrides the RPC's default and the request."""
    server = serve("--disallowed-special-floor", "REJECT")
    for options in ({}, {"disallowed_special": AS_TEXT}):
        shared: dict[str, Any] = {"encoding": "cl100k_base", **options}
        items = [text_pb2.TextItem(text=END), text_pb2.TextItem(text="a")]
        for request in (
            tokenizer_pb2.EncodeRequest(text=END, **shared),
            tokenizer_pb2.CountRequest(text=END, **shared),
            tokenizer_pb2.EncodeRequest(segments=[text_pb2.Segment(text=END)], **shared),
        ):
            method = getattr(server.stub, type(request).__name__.removesuffix("Request"))
            assert failure(method, request).reason == "SPECIAL_TOKEN_IN_TEXT"
        counts = server.stub.BatchCount(tokenizer_pb2.BatchCountRequest(items=items, **shared))
        assert counts.results[0].error.reason == "SPECIAL_TOKEN_IN_TEXT"
        assert counts.results[1].count == 1
        failed = answers_of(
            server.stub.EncodeStream, [encode_config(**shared), EncodeRequest(text=END)]
        )[1]
        assert failed is not None
        assert failed.reason == "SPECIAL_TOKEN_IN_TEXT"
    assert server.stub.Count(tokenizer_pb2.CountRequest(encoding="gpt-4", text="a b")).count == 2
