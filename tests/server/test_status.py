"""The table from exceptions to errors: it is complete, and its messages show values in full."""

from __future__ import annotations

import pytest
from bytepair_engine import errors as engine_errors
from bytepair_engine.chat import errors as chat_errors
from bytepair_server import errors
from bytepair_server.rpc import limits, status
from google.rpc import error_details_pb2  # type: ignore[import-untyped]


def test_a_long_delay_is_written_out() -> None:
    failed = status.failure_of(errors.QuotaExceeded("input_bytes_per_second", 1e4, 1600.4))
    assert failed is not None
    assert failed.message.endswith("try again in 1600.400 s")


def test_a_delay_longer_than_a_duration_is_its_maximum() -> None:
    failed = status.failure_of(errors.QuotaExceeded("requests_per_second", 1e-300, 1e300))
    assert failed is not None
    _, (name, retry, _) = failed.for_transport().details
    assert name == "google.rpc.RetryInfo"
    info = error_details_pb2.RetryInfo.FromString(retry)
    assert info.retry_delay.seconds == 315_576_000_000


@pytest.mark.parametrize(
    ("known", "example"), [(["cl100k_base", "gpt-4o"], "gpt-4o"), (["mine"], "mine")]
)
def test_a_call_without_an_encoding_is_told_one_that_is_served(
    known: list[str], example: str
) -> None:
    failure = status.failure_of(engine_errors.UnknownEncoding("", known))
    assert failure is not None
    assert failure.message == f'no encoding given; set "encoding", such as "{example}"'


def test_an_error_of_a_whole_chat_has_no_index() -> None:
    failure = status.failure_of(chat_errors.InvalidChat(None, "tools", "field_not_supported"))
    assert failure is not None
    assert (failure.field, failure.metadata) == (
        "tools",
        {"field": "tools", "rule": "field_not_supported"},
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            errors.InputTooLarge("items.ids", 9, 8, "ids"),
            "items.ids: 9, and this server accepts at most 8; the operator's max_ids decides this "
            "limit: send fewer items",
        ),
        (
            errors.InputTooLarge("text", 9, 8, "bytes"),
            "text: 9 bytes, and this server accepts at most 8; the operator's max_input_bytes "
            "decides this limit; Encode, Count and Split have streams for longer texts",
        ),
        (
            errors.InputTooLarge("stop", 9, 8, "strings"),
            "stop: 9 strings, and this server accepts at most 8; the operator's max_stop_strings "
            "and max_stop_bytes decide this limit",
        ),
        (
            errors.InputTooLarge("messages", 9, 8, limits.PARTS),
            "messages: 9 messages, parts, calls and tools, and this server accepts at most 8; the "
            "operator's max_segments decides this limit",
        ),
        (
            errors.InputTooLarge("request", None, 8, "bytes of JSON"),
            "request: more than the 8 bytes of JSON that this server accepts; send a larger one "
            "as protobuf, or its text by a stream",
        ),
    ],
)
def test_a_limit_repeats_no_word(error: errors.InputTooLarge, message: str) -> None:
    failure = status.failure_of(error)
    assert failure is not None
    assert failure.message == message


def test_every_exception_type_has_a_row() -> None:
    ours = {errors.EncodingNotLoaded, *errors.RequestRejected.__subclasses__()}
    theirs = {
        engine_errors.UnknownEncoding,
        engine_errors.SpecialTokenFound,
        engine_errors.InvalidUnicode,
        engine_errors.BudgetTooSmall,
        engine_errors.InvalidOption,
        chat_errors.ChatFormatMismatch,
        chat_errors.InvalidChat,
        chat_errors.TemplateLimit,
        chat_errors.UnknownChatFormat,
    }
    # Requests do not cause these: tables are read at start; the server has types of its own for
    # text that cannot be split and for unknown ids; a caller that cancels does not wait for a
    # status; and bugs are not described.
    never = {
        "BadTemplate",
        "Cancelled",
        "InternalError",
        "PatternFault",
        "PieceTooLong",
        "StreamFinished",
        "TableFault",
        "TrainingError",
        "UnknownToken",
        "UnknownTokenId",
        "VocabularyError",
    }
    assert set(status.TABLE) == ours | theirs
    declared = {each.__name__ for each in engine_errors.BytepairError.__subclasses__()}
    assert not declared - {each.__name__ for each in theirs} - never
    assert not never & {each.__name__ for each in status.TABLE}


@pytest.mark.parametrize(("limit", "shown"), [(1e7, "10000000"), (0.5, "0.5"), (1, "1")])
def test_a_quota_is_shown_without_an_exponent(limit: float, shown: str) -> None:
    failure = status.failure_of(errors.QuotaExceeded("input_bytes_per_second", limit, 1.0))
    assert failure is not None
    assert failure.metadata == {"quota": "input_bytes_per_second", "limit": shown}
    assert f"quota of {shown} " in failure.message
    assert failure.retry_seconds == 1.0
