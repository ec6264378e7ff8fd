"""Each reason and status of a failed call becomes its exception, with its metadata."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import bytepair_client
import grpc
import pytest
from bytepair.v1 import text_pb2
from bytepair_client import _errors as errors
from bytepair_client import _status as failures
from google.rpc import status_pb2  # type: ignore[import-untyped]
from support.clients import Clients
from support.scripted import ScriptedServer, details, fail

PROTO = Path(__file__).parents[2] / "proto/bytepair/v1"
FAILING = [status for status in grpc.StatusCode if status is not grpc.StatusCode.OK]

# reason -> its metadata -> the attributes with their values.
FACTS: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "UNKNOWN_ENCODING": (
        {"encoding": "x", "nearest": "y, z"},
        {"encoding": "x", "nearest": "y, z"},
    ),
    "FINGERPRINT_MISMATCH": (
        {"encoding": "x", "format": "y", "expected": "sha256:1", "actual": "sha256:2"},
        {"encoding": "x", "format": "y", "expected": "sha256:1", "actual": "sha256:2"},
    ),
    "SPECIAL_TOKEN_IN_TEXT": (
        {"token": "<|a|>", "byte_offset": "12", "index": "3", "field": "content"},
        {"token": "<|a|>", "byte_offset": 12, "index": 3, "field": "content"},
    ),
    "UNKNOWN_TOKEN_ID": (
        {"encoding": "x", "id": "7", "index": "3"},
        {"encoding": "x", "id": 7, "index": 3},
    ),
    "INVALID_UTF8": ({"byte_offset": "0"}, {"byte_offset": 0}),
    "INPUT_TOO_LARGE": (
        {"field": "text", "limit": "10", "size": "11"},
        {"field": "text", "limit": 10, "size": 11},
    ),
    "INVALID_OPTION": ({"field": "errors"}, {"field": "errors"}),
    "SPECIAL_TOKEN_NOT_PERMITTED": (
        {"token": "<|a|>", "encoding": "x"},
        {"token": "<|a|>", "encoding": "x"},
    ),
    "UNKNOWN_CHAT_FORMAT": (
        {"format": "x", "nearest": "y"},
        {"format": "x", "nearest": "y"},
    ),
    "CHAT_FORMAT_MISMATCH": (
        {"format": "x", "encoding": "y", "missing": "<|a|>"},
        {"format": "x", "encoding": "y", "missing": "<|a|>"},
    ),
    "CHAT_FORMAT_NOT_PERMITTED": ({"format": "x"}, {"format": "x"}),
    "INVALID_CHAT": (
        {"index": "2", "field": "role", "rule": "role_unknown"},
        {"index": 2, "field": "role", "rule": "role_unknown"},
    ),
    "TEMPLATE_LIMIT": ({"limit": "steps"}, {"limit": "steps"}),
    "BUDGET_TOO_SMALL": (
        {"needed": "9", "budget": "8", "byte_offset": "7"},
        {"needed": 9, "budget": 8, "byte_offset": 7},
    ),
    "UNAUTHENTICATED": ({}, {}),
    "OVERLOADED": (
        {"setting": "max_in_flight"},
        {"setting": "max_in_flight", "retry_after": 1.5},
    ),
    "QUOTA_EXCEEDED": (
        {"quota": "requests_per_second", "limit": "0.5"},
        {"quota": "requests_per_second", "limit": 0.5, "retry_after": 1.5},
    ),
    "STREAM_IDLE": ({"seconds": "300"}, {"seconds": 300.0}),
    "DRAINING": ({}, {}),
}

# Without a reason; other statuses are RequestRejected.
BY_STATUS = {
    "CANCELLED": errors.Cancelled,
    "UNKNOWN": errors.InternalError,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "RESOURCE_EXHAUSTED": errors.ResourceExhausted,
    "UNIMPLEMENTED": errors.Unimplemented,
    "INTERNAL": errors.InternalError,
    "UNAVAILABLE": errors.Unavailable,
    "DATA_LOSS": errors.InternalError,
    "UNAUTHENTICATED": errors.Unauthenticated,
}


def published_reasons() -> dict[str, grpc.StatusCode]:
    """The error tables of the proto."""
    tables = "".join((PROTO / f"{name}.proto").read_text() for name in ("tokenizer", "chat"))
    rows = re.findall(r"^//   ([A-Z0-9_]+) +([A-Z_]+) ", tables, re.MULTILINE)
    return {reason: grpc.StatusCode[status] for reason, status in rows}


def call_that_fails(clients: Clients, server: ScriptedServer) -> errors.TokenizerError:
    with pytest.raises(errors.TokenizerError) as caught:
        clients(server.target, encoding="e", max_attempts=1).count("text")
    return caught.value


def test_the_catalogue_of_reasons_is_complete() -> None:
    reasons = published_reasons()
    assert reasons.pop("INTERNAL") is grpc.StatusCode.INTERNAL  # its status decides the type
    assert len(reasons) == 19
    assert set(errors.BY_REASON) == set(reasons) == set(FACTS)


def test_every_value_of_the_metadata_is_an_attribute() -> None:
    page = (PROTO.parents[2] / "docs/errors.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z0-9_]+)` \| [A-Z_]+ \| ([^|]+) \|", page, re.MULTILINE))
    assert set(FACTS) == set(rows) - {"INTERNAL"}
    for reason, (metadata, attributes) in FACTS.items():
        documented = set(re.findall(r"`(\w+)`", rows[reason]))
        assert documented == set(metadata) == set(attributes) - {"retry_after"}, reason


@pytest.mark.parametrize("reason", FACTS)
def test_a_reason_decides_the_type(clients: Clients, reason: str) -> None:
    status = published_reasons()[reason]
    metadata, attributes = FACTS[reason]
    with ScriptedServer(fail(status, "why", details=details(reason, status, metadata))) as server:
        error = call_that_fails(clients, server)
    assert type(error) is errors.BY_REASON[reason]
    assert error.REASON == error.reason == reason
    assert error.code == status.name
    assert str(error) == error.message == "why"
    assert error.metadata.items() >= metadata.items()
    assert error.request_id == "request-1"
    assert {name: getattr(error, name) for name in attributes} == attributes


@pytest.mark.slow
@pytest.mark.parametrize("status", FAILING, ids=lambda status: status.name)
def test_the_status_decides_the_type_without_a_reason(
    clients: Clients, status: grpc.StatusCode
) -> None:
    with ScriptedServer(fail(status, "proxy says no")) as server:
        error = call_that_fails(clients, server)
        assert server.target in str(error)
    assert type(error) is BY_STATUS.get(status.name, errors.RequestRejected)
    assert error.code == status.name
    assert error.metadata == {}
    assert error.request_id == "request-1"
    if status is not grpc.StatusCode.DEADLINE_EXCEEDED:
        assert "proxy says no" in str(error)


@pytest.mark.parametrize("outer", ["config", "options"])
def test_names_of_the_api_in_a_message_are_those_of_python(clients: Clients, outer: str) -> None:
    status = grpc.StatusCode.INVALID_ARGUMENT
    message = f"{outer}.text: use BatchEncode or CountStream; Count as RecountStreams"
    failed = details("INVALID_OPTION", status, {"field": f"{outer}.text"})
    with ScriptedServer(fail(status, message, details=failed)) as server:
        error = call_that_fails(clients, server)
    assert str(error) == "text: use encode_batch() or count_stream(); Count as RecountStreams"
    assert isinstance(error, errors.InvalidOption)
    assert error.field == "text"


def test_an_unknown_reason_is_a_tokenizer_error(clients: Clients) -> None:
    status = grpc.StatusCode.INVALID_ARGUMENT
    answer = fail(status, "new", details=details("NEW_REASON", status, {"key": "value"}))
    with ScriptedServer(answer) as server:
        error = call_that_fails(clients, server)
    assert type(error) is errors.TokenizerError
    assert (error.reason, error.metadata, str(error)) == ("NEW_REASON", {"key": "value"}, "new")


@pytest.mark.parametrize(
    "broken",
    [
        b"\xff\xff\xff",
        details("OVERLOADED", grpc.StatusCode.NOT_FOUND, {}, domain="elsewhere.example"),
        status_pb2.Status(code=5, message="no details").SerializeToString(),
    ],
    ids=["not a message", "of another domain", "empty"],
)
def test_broken_details_are_ignored(clients: Clients, broken: bytes) -> None:
    with ScriptedServer(fail(grpc.StatusCode.NOT_FOUND, "gone", details=broken)) as server:
        error = call_that_fails(clients, server)
    assert type(error) is errors.RequestRejected
    assert error.reason is None


def test_details_that_a_proxy_adds_are_ignored(clients: Clients) -> None:
    status = grpc.StatusCode.NOT_FOUND
    both = details("UNKNOWN_ENCODING", status, {}) + details("X", status, {}, domain="a.example")
    with ScriptedServer(fail(status, "gone", details=both)) as server:
        assert isinstance(call_that_fails(clients, server), errors.UnknownEncoding)


def test_a_request_larger_than_the_server_accepts(clients: Clients) -> None:
    message = "Received message larger than max (11 vs. 10)"
    with ScriptedServer(fail(grpc.StatusCode.RESOURCE_EXHAUSTED, message)) as server:
        error = call_that_fails(clients, server)
    assert isinstance(error, errors.InputTooLarge)
    assert (error.field, error.limit, error.metadata["size"]) == ("request", 10, "11")


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "²"])
def test_an_attribute_that_is_not_a_number_is_none(value: str) -> None:
    assert errors.SpecialTokenInText("why", metadata={"byte_offset": value}).byte_offset is None
    assert errors.SpecialTokenInText("why").byte_offset is None


@pytest.mark.parametrize("reason", FACTS)
def test_the_error_of_an_item_has_the_type_of_a_failed_call(reason: str) -> None:
    status = published_reasons()[reason]
    metadata, attributes = FACTS[reason]
    item = text_pb2.Error(code=status.value[0], reason=reason, message="why", metadata=metadata)
    error = failures.from_item(item, 3)
    assert type(error) is errors.BY_REASON[reason]
    assert (error.code, error.reason, error.item) == (status.name, reason, 3)
    assert str(error) == "item 3: why"
    checked = {name: value for name, value in attributes.items() if name != "retry_after"}
    assert {name: getattr(error, name) for name in checked} == checked
    assert failures.to_item(error) == item


def test_the_error_of_an_item_may_have_no_reason() -> None:
    error = failures.from_item(text_pb2.Error(code=13, message="use BatchEncode"))
    assert type(error) is errors.InternalError
    assert (error.reason, str(error)) == (None, "use encode_batch()")


def test_errors_can_be_pickled() -> None:
    error = errors.SpecialTokenInText(
        "why", code="INVALID_ARGUMENT", metadata={"byte_offset": "3"}, item=1, request_id="r"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize("kind", [errors.InvalidUtf8, errors.Unavailable, errors.ClientClosed])
def test_a_changed_message_is_shown_everywhere(kind: type[errors.TokenizerError]) -> None:
    error = kind("first")
    error.message = "second"
    assert repr(error) == f"{kind.__name__}('second')"
    assert error.args == ("second",)
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "second"


def test_the_tree_in_the_docstring_is_that_of_the_classes() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    exported = [
        name
        for name in bytepair_client.__all__
        if isinstance(kind := getattr(bytepair_client, name), type)
        and issubclass(kind, errors.TokenizerError)
        and kind is not errors.TokenizerError
    ]
    assert sorted(drawn) == sorted(exported)
    builtin = {"LookupError", "ValueError", "ConnectionError", "TimeoutError", "RuntimeError"}
    for name, base in re.findall(r"── (\w+) +(\w+Error)\b", errors.__doc__ or ""):
        assert base in builtin
        assert base in [kind.__name__ for kind in getattr(errors, name).__mro__]
