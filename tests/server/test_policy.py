"""A text becomes a control token only if the request and the ceiling allow it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from bytepair.v1 import context_pb2, text_pb2, tokenizer_pb2
from support.failures import failure
from support.keys import keys_toml
from support.oracle import oracle
from support.serving import RunningServer, write_config
from support.streaming import CountRequest, EncodeRequest, count_config, encode_config

END, FIM = "<|endoftext|>", "<|fim_prefix|>"
END_ID, FIM_ID = 100257, 100258
KEYS = {"chat": "chat-key", "billing": "billing-key"}
AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
REJECT = text_pb2.DISALLOWED_SPECIAL_REJECT


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server where chat may use <|endoftext|> in cl100k_base and all of p50k_edit, and others
    only <|endoftext|> in p50k_edit."""
    folder = tmp_path_factory.mktemp("policy")
    (folder / "keys.toml").write_text(keys_toml(**KEYS))
    config = f"""
        api_keys_file = "keys.toml"
        builtin_encodings = ["cl100k_base", "p50k_edit"]
        [ceiling.chat]
        cl100k_base = ["{END}"]
        p50k_edit = "ALL"
        [ceiling.default]
        p50k_edit = ["{END}"]
    """
    with RunningServer("--config", write_config(folder, config)) as running:
        yield running


def as_caller(name: str) -> dict[str, tuple[tuple[str, str], ...]]:
    return {"metadata": (("authorization", f"Bearer {KEYS[name]}"),)}


def ids(server: RunningServer, caller: str, **fields: Any) -> list[int]:
    request = tokenizer_pb2.EncodeRequest(**{"encoding": "cl100k_base", **fields})
    return list(server.stub.Encode(request, **as_caller(caller)).ids)


@pytest.mark.slow
def test_a_permitted_token_becomes_its_id(guarded: RunningServer) -> None:
    assert ids(guarded, "chat", text=f"a{END}", allowed_special=[END]) == [64, END_ID]
    counted = guarded.stub.Count(
        tokenizer_pb2.CountRequest(encoding="gpt-4", text=f"a{END}", allowed_special=[END]),
        **as_caller("chat"),
    )
    assert counted.count == 2


def test_all_means_all_within_the_ceiling(guarded: RunningServer) -> None:
    text = f"{END}{FIM}"
    as_text = oracle("cl100k_base").encode(text, allowed_special={END}, disallowed_special=())
    assert (
        ids(guarded, "chat", text=text, allowed_special=["ALL"], disallowed_special=AS_TEXT)
        == as_text
    )
    rejected = failure(
        guarded.stub.Encode,
        tokenizer_pb2.EncodeRequest(encoding="gpt-4", text=text, allowed_special=["ALL"]),
        **as_caller("chat"),
    )
    assert rejected.reason == "SPECIAL_TOKEN_IN_TEXT"
    assert rejected.metadata == {"token": FIM, "byte_offset": str(len(END))}
    assert ids(guarded, "chat", encoding="p50k_edit", text=text, allowed_special=["ALL"]) == [
        50256,
        50281,
    ]
    assert ids(
        guarded, "billing", text=text, allowed_special=["ALL"], disallowed_special=AS_TEXT
    ) == oracle("cl100k_base").encode(text, disallowed_special=())


@pytest.mark.parametrize("rpc", ["Encode", "Count", "BatchEncode", "BatchCount"])
@pytest.mark.parametrize(
    ("caller", "names", "culprit"),
    [
        ("chat", [FIM], FIM),
        ("chat", [END, FIM], FIM),
        ("chat", [END, "ALL"], "ALL"),
        ("chat", ["<|no_such|>"], "<|no_such|>"),
        ("chat", [""], ""),
        ("billing", [END], END),
    ],
)
def test_a_token_beyond_the_ceiling_is_denied(
    guarded: RunningServer, rpc: str, caller: str, names: list[str], culprit: str
) -> None:
    request = getattr(tokenizer_pb2, f"{rpc}Request")(encoding="gpt-4", allowed_special=names)
    failed = failure(getattr(guarded.stub, rpc), request, **as_caller(caller))
    assert failed.code is grpc.StatusCode.PERMISSION_DENIED
    assert failed.reason == "SPECIAL_TOKEN_NOT_PERMITTED"
    assert failed.metadata == {"token": culprit, "encoding": "cl100k_base"}
    assert failed.field == "allowed_special"
    assert ("is not a special token of" in failed.message) == (culprit not in (END, FIM))


def test_a_caller_s_ceiling_replaces_the_default(guarded: RunningServer) -> None:
    request = tokenizer_pb2.EncodeRequest(encoding="p50k_edit", text=END, allowed_special=[END])
    for caller in KEYS:
        assert list(guarded.stub.Encode(request, **as_caller(caller)).ids) == [50256]
    request.allowed_special[:] = [FIM]
    assert failure(guarded.stub.Encode, request, **as_caller("billing")).code is (
        grpc.StatusCode.PERMISSION_DENIED
    )


def test_a_special_token_segment_needs_the_ceiling_and_nothing_else(
    guarded: RunningServer,
) -> None:
    parts = [text_pb2.Segment(text="a"), text_pb2.Segment(special_token=END)]
    assert ids(guarded, "chat", segments=parts) == [64, END_ID]
    for name in (FIM, "ALL", ""):
        request = tokenizer_pb2.EncodeRequest(encoding="gpt-4", segments=parts[:1])
        request.segments.add(special_token=name)
        failed = failure(guarded.stub.Encode, request, **as_caller("chat"))
        assert failed.reason == "SPECIAL_TOKEN_NOT_PERMITTED"
        assert failed.metadata == {"token": name, "encoding": "cl100k_base"}
        assert failed.field == "segments[1].special_token"


def test_the_text_of_segments_is_never_a_control_token(guarded: RunningServer) -> None:
    parts = [text_pb2.Segment(text=text) for text in ("<|endof", "text|>", END)]
    plain = oracle("cl100k_base").encode_ordinary
    got = ids(guarded, "chat", segments=parts, allowed_special=["ALL"], disallowed_special=AS_TEXT)
    assert got == plain("<|endof") + plain("text|>") + plain(END)
    assert END_ID not in got
    parts = [text_pb2.Segment(text="né"), *parts[:2], text_pb2.Segment(text=f"é{END}")]
    failed = failure(
        guarded.stub.Encode,
        tokenizer_pb2.EncodeRequest(encoding="gpt-4", segments=parts, allowed_special=[END]),
        **as_caller("chat"),
    )
    assert failed.reason == "SPECIAL_TOKEN_IN_TEXT"
    assert failed.metadata == {"token": END, "byte_offset": str(3 + len(END) + 2)}
    assert failed.field == "segments[3].text"
    # allowed_special has no effect on segments, so it is not the advice.
    assert failed.message.endswith("; in segments only a special_token becomes a control token")


def test_offsets_count_special_token_segments_by_their_spelling(guarded: RunningServer) -> None:
    answer = guarded.stub.Encode(
        tokenizer_pb2.EncodeRequest(
            encoding="gpt-4",
            segments=[
                text_pb2.Segment(text="é"),
                text_pb2.Segment(special_token=END),
                text_pb2.Segment(text="a"),
            ],
            offsets=text_pb2.OFFSET_UNIT_BYTE,
        ),
        **as_caller("chat"),
    )
    assert list(answer.ids) == [978, END_ID, 64]
    assert list(answer.offsets) == [0, 2, 2 + len(END)]


@pytest.mark.parametrize(
    ("rpc", "rejects"), [("Encode", True), ("BatchEncode", True), ("Count", False),
                         ("BatchCount", False)],
)  # fmt: skip
@pytest.mark.parametrize("action", [None, REJECT, AS_TEXT])
@pytest.mark.parametrize("form", ["text", "segments"])
def test_special_tokens_in_text_by_rpc_and_action(
    guarded: RunningServer, rpc: str, rejects: bool, action: int | None, form: str
) -> None:
    content = {"text": END} if form == "text" else {"segments": [text_pb2.Segment(text=END)]}
    options = {"encoding": "cl100k_base"} | (
        {} if action is None else {"disallowed_special": action}
    )
    if rpc.startswith("Batch"):
        request = getattr(tokenizer_pb2, f"{rpc}Request")(
            items=[text_pb2.TextItem(**content)], **options
        )
        answer = getattr(guarded.stub, rpc)(request, **as_caller("billing"))
        rejected = answer.results[0].error.reason == "SPECIAL_TOKEN_IN_TEXT"
    else:
        request = getattr(tokenizer_pb2, f"{rpc}Request")(**content, **options)
        try:
            getattr(guarded.stub, rpc)(request, **as_caller("billing"))
            rejected = False
        except grpc.RpcError:
            rejected = True
    assert rejected == (rejects if action is None else action == REJECT)


def test_a_denied_segment_fails_only_its_item(guarded: RunningServer) -> None:
    request = tokenizer_pb2.BatchEncodeRequest(encoding="gpt-4")
    request.items.add(segments=[text_pb2.Segment(special_token=FIM)])
    request.items.add(text="a")
    answer = guarded.stub.BatchEncode(request, **as_caller("chat"))
    assert answer.results[0].error.code == grpc.StatusCode.PERMISSION_DENIED.value[0]
    assert answer.results[0].error.reason == "SPECIAL_TOKEN_NOT_PERMITTED"
    assert list(answer.results[1].ids) == [64]


def test_policy_decisions_are_counted(guarded: RunningServer) -> None:
    def counted(rpc: str = "Count") -> dict[str, float]:
        labels = {"rpc": rpc, "encoding": "p50k_edit"}
        return {
            action: guarded.metric("bytepair_policy_total", **labels, action=action)
            for action in ("allowed", "denied", "rejected")
        }

    before = counted()
    request = tokenizer_pb2.CountRequest(encoding="p50k_edit", allowed_special=[END], text="a")
    guarded.stub.Count(request, **as_caller("billing"))
    request.allowed_special[:] = [FIM]
    failure(guarded.stub.Count, request, **as_caller("billing"))
    request = tokenizer_pb2.CountRequest(encoding="p50k_edit", text=END, disallowed_special=REJECT)
    failure(guarded.stub.Count, request, **as_caller("billing"))
    after = counted()
    assert {action: after[action] - before[action] for action in before} == {
        "allowed": 1,
        "denied": 1,
        "rejected": 1,
    }

    batch = tokenizer_pb2.BatchCountRequest(encoding="p50k_edit", disallowed_special=REJECT)
    batch.items.add(segments=[text_pb2.Segment(special_token=FIM)])
    batch.items.add(text=END)
    batch.items.add(text=END)
    guarded.stub.BatchCount(batch, **as_caller("billing"))
    assert counted("BatchCount") == {"allowed": 0, "denied": 1, "rejected": 1}

    cut = context_pb2.BatchTruncateRequest(
        encoding="p50k_edit", items=[{"text": END}], max_tokens=1, disallowed_special=REJECT
    )
    guarded.stub.BatchTruncate(cut, **as_caller("billing"))
    assert counted("BatchTruncate") == {"allowed": 0, "denied": 0, "rejected": 1}


def as_text_counted(server: RunningServer, rpc: str) -> float:
    labels = {"caller": "chat", "rpc": rpc, "encoding": "cl100k_base", "action": "as_text"}
    return server.metric("bytepair_policy_total", **labels)


@pytest.mark.parametrize(
    ("rpc", "fields", "counted"),
    [
        ("Count", {"text": f"a {END}"}, 1),
        ("Count", {"text": "a <|endoftex"}, 0),
        ("Count", {"text": f"a {END}", "disallowed_special": REJECT}, 0),
        ("Count", {"text": END, "allowed_special": [END]}, 0),
        ("Count", {"text": END + FIM, "allowed_special": [END]}, 1),
        ("Count", {"segments": [{"special_token": END}, {"text": "a"}]}, 0),
        ("Count", {"segments": [{"text": END}], "allowed_special": [END]}, 1),
        ("Count", {"segments": [{"text": END[:5]}, {"text": END[5:]}]}, 0),
        ("Encode", {"text": END, "disallowed_special": AS_TEXT}, 1),
        ("Encode", {"text": END}, 0),
        ("BatchCount", {"items": [{"text": "a"}, {"text": END}, {"text": END}]}, 1),
        ("BatchCount", {"items": [{"text": END[:5]}, {"text": END[5:]}]}, 0),
        ("BatchCount", {"items": [{"text": ""}, {"segments": [{"text": END}]}]}, 1),
        ("BatchEncode", {"items": [{"text": "a"}], "disallowed_special": AS_TEXT}, 0),
        ("BatchEncode", {"items": [{"text": END}], "disallowed_special": AS_TEXT}, 1),
        ("Truncate", {"text": f"a {END}", "max_tokens": 1}, 1),
        ("BatchTruncate", {"items": [{"text": "a"}, {"text": END}], "max_tokens": 1}, 1),
        ("Split", {"text": f"a {END}", "max_tokens": 99}, 1),
        ("Split", {"text": "a <|endoftex", "max_tokens": 99}, 0),
    ],
)
def test_special_tokens_that_stay_text_are_counted(
    guarded: RunningServer, rpc: str, fields: dict[str, Any], counted: int
) -> None:
    before = as_text_counted(guarded, rpc)
    module = tokenizer_pb2 if rpc.endswith(("Count", "Encode")) else context_pb2
    request = getattr(module, f"{rpc}Request")(encoding="cl100k_base", **fields)
    with suppress(grpc.RpcError):
        getattr(guarded.stub, rpc)(request, **as_caller("chat"))
    assert as_text_counted(guarded, rpc) - before == counted


@pytest.mark.parametrize("cut", [1, 3, 100])
def test_special_tokens_that_stay_text_are_counted_in_streams(
    guarded: RunningServer, cut: int
) -> None:
    for text, counted in ((f"é{END}{END}", 1), ("é<|endoftext", 0)):
        before = [as_text_counted(guarded, rpc) for rpc in ("EncodeStream", "CountStream")]
        data = text.encode()
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
        shared: dict[str, Any] = {"encoding": "cl100k_base", "disallowed_special": AS_TEXT}
        messages: list[Any] = [encode_config(**shared), *(EncodeRequest(data=p) for p in pieces)]
        list(guarded.stub.EncodeStream(iter(messages), **as_caller("chat")))
        messages = [count_config(**shared), *(CountRequest(data=piece) for piece in pieces)]
        guarded.stub.CountStream(iter(messages), **as_caller("chat"))
        after = [as_text_counted(guarded, rpc) for rpc in ("EncodeStream", "CountStream")]
        assert [a - b for a, b in zip(after, before, strict=True)] == [counted, counted]


def test_a_part_of_a_text_cannot_have_control_tokens(guarded: RunningServer) -> None:
    request = context_pb2.TruncateRequest(
        encoding="cl100k_base", text=END, max_tokens=1, is_part=True, allowed_special=[END]
    )
    failed = failure(guarded.stub.Truncate, request, **as_caller("chat"))
    assert (failed.reason, failed.field) == ("INVALID_OPTION", "is_part")


def test_all_with_an_empty_ceiling_allows_nothing(guarded: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", allowed_special=["ALL"])
    guarded.stub.Count(request, **as_caller("billing"))
    labels = {"encoding": "cl100k_base", "action": "allowed"}
    before = guarded.metric("bytepair_policy_total", rpc="Count", **labels)
    guarded.stub.Count(request, **as_caller("billing"))
    assert guarded.metric("bytepair_policy_total", rpc="Count", **labels) == before


def test_a_call_without_a_known_key_is_unauthenticated(guarded: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")
    key = KEYS["chat"]
    for value in (None, "", key, f"Basic {key}", "Bearer ", f"Bearer {key}x", f"Bearer {key[:-1]}"):
        metadata = () if value is None else (("authorization", value),)
        failed = failure(guarded.stub.Count, request, metadata=metadata)
        assert (failed.code, failed.reason) == (
            grpc.StatusCode.UNAUTHENTICATED,
            "UNAUTHENTICATED",
        )
        assert failed.message.endswith("send 'authorization: Bearer <API key>'")
        assert failed.metadata == {}
    known = (("authorization", f"bearer {key}"),)
    assert guarded.stub.Count(request, metadata=known).count == 1
    assert all(value not in guarded.raw_log for value in KEYS.values())
