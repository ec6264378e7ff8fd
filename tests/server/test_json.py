"""JSON requests are translated or rejected as protobuf does."""

from __future__ import annotations

import json as standard
import math
from typing import Any

import pytest
from bytepair.v1 import chat_pb2, text_pb2, token_pb2, tokenizer_pb2
from bytepair_server.errors import InputTooLarge, InvalidField
from bytepair_server.rpc import json
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import example, given
from hypothesis import strategies as st

REQUESTS: list[type[Message]] = [
    tokenizer_pb2.CountRequest,
    tokenizer_pb2.EncodeRequest,
    tokenizer_pb2.DecodeRequest,
    tokenizer_pb2.BatchCountRequest,
]
#: Includes surrogates, which JSON can contain and protobuf rejects.
TEXT = st.text(st.characters(codec=None), max_size=8)
NUMBER = st.integers(-2, 2**32 + 1) | st.floats() | st.integers()
SCALAR = TEXT | NUMBER | st.booleans() | st.none()
VALUE = SCALAR | st.lists(SCALAR, max_size=3) | st.dictionaries(st.just("text"), SCALAR, max_size=1)
NAMES = sorted(
    {
        name
        for each in REQUESTS
        for field in each.DESCRIPTOR.fields
        for name in (field.name, field.json_name)
    }
    | {"unknown"}
)
FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES), VALUE).filter(lambda field: not is_odd(*field)), max_size=4
)


def is_odd(name: str, value: Any) -> bool:
    """Whether protobuf accepts a value that the server rejects: "" in a list for a message without
    fields, or an enum's number of more than 32 bits."""
    if name in ("items", "segments"):
        return isinstance(value, list) and "" in value
    is_enum = name in ("disallowedSpecial", "disallowed_special", "errors")
    return is_enum and isinstance(value, int | float) and not -(2**31) <= value < 2**31


def written(fields: list[tuple[str, Any]]) -> bytes:
    """Write a JSON object, in which a name may occur twice."""
    inside = (f"{standard.dumps(name)}: {standard.dumps(value)}" for name, value in fields)
    return f"{{{', '.join(inside)}}}".encode()


def parsed_by_protobuf(raw: bytes, request_class: type[Message]) -> bytes | None:
    """Parse with protobuf; None if it rejects the JSON."""
    try:
        return json_format.Parse(raw, request_class()).SerializeToString()
    except (json_format.ParseError, UnicodeError):
        return None


@given(FIELDS, st.sampled_from(REQUESTS))
@example([("text", "a"), ("text", "b")], tokenizer_pb2.CountRequest)
@example([("allowedSpecial", []), ("allowed_special", ["a"])], tokenizer_pb2.CountRequest)
@example([("ids", [1, True])], tokenizer_pb2.DecodeRequest)
@example([("ids", [1, 2**32])], tokenizer_pb2.DecodeRequest)
@example([("ids", [1, 2.0, "3"])], tokenizer_pb2.DecodeRequest)
@example([("limit", 0)], tokenizer_pb2.CountRequest)
@example([("text", None)], tokenizer_pb2.CountRequest)
@example([("limit", "+9007199254740993")], tokenizer_pb2.CountRequest)
@example([("text", "\ud800")], tokenizer_pb2.CountRequest)
def test_json_requests_are_parsed_as_protobuf_parses_them(
    fields: list[tuple[str, Any]], request_class: type[Message]
) -> None:
    raw = written(fields)
    right = parsed_by_protobuf(raw, request_class)
    if right is None:
        with pytest.raises(InvalidField) as caught:
            json.read(raw, request_class)
        assert caught.value.problem != "not the JSON of this request"
    else:
        read = request_class.FromString(json.read(raw, request_class))
        assert read == request_class.FromString(right)


def test_the_size_of_json_is_limited() -> None:
    full = b"{}".ljust(json.MAX_BYTES)
    assert json.read(full, tokenizer_pb2.CountRequest) == b""
    with pytest.raises(InputTooLarge):
        json.read(full + b" ", tokenizer_pb2.CountRequest)


@pytest.mark.parametrize("raw", [b"", b"1", b"{", b'"text"', b"[" * 100_000])
def test_json_that_is_not_an_object_is_rejected_and_an_empty_body_is_an_empty_request(
    raw: bytes,
) -> None:
    if raw == b"":
        assert json.read(raw, tokenizer_pb2.CountRequest) == b""
    else:
        with pytest.raises(InvalidField):
            json.read(raw, tokenizer_pb2.CountRequest)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"secret": 1}', "secret: unknown field; the fields are encoding, text, "),
        (b'{"segments": [{"role": "secret"}]}', "segments[0].role: unknown field"),
        (b'{"segments": [{"\\ud800\\n": "secret"}]}', r"segments[0].\ud800\n: unknown field"),
        (b'{"text": ["secret"]}', "text: must be a string; for several texts call BatchCount"),
        (b'{"text": 5, "encoding": "secret"}', "text: must be a string"),
        (b'{"text": true}', "text: must be a string"),
        (b'{"allowedSpecial": "secret"}', "allowedSpecial: must be a list"),
        (b'{"allowedSpecial": ["a", null]}', "allowedSpecial[1]: must be a string"),
        (b'{"segments": [{"text": "a"}, {"text": 5}]}', "segments[1].text: must be a string"),
        (b'{"segments": ["secret"]}', "segments[0]: must be an object; the fields are text, spec"),
        (b'{"segments": [{"text": "a", "specialToken": "b"}]}', "segments[0].specialToken: exclud"),
        (b'{"limit": -1, "text": "secret"}', f"limit: must be an integer from 0 to {2**64 - 1}"),
        (b'{"limit": 1.5}', "limit: must be an integer"),
        (b'{"limit": true}', "limit: must be an integer"),
        (b'{"limit": "secret"}', "limit: must be an integer"),
        (b'{"addSpecialTokens": "true"}', "addSpecialTokens: must be true or false"),
        (b'{"text": "a", "text": "secret"}', "text: is given twice"),
        (b'{"allowedSpecial": [], "allowedSpecial": []}', "allowedSpecial: is given twice"),
        (b'{"text": "\\ud800", "encoding": "secret"}', "text: the text has half of a surrogate"),
        (
            b'{"disallowedSpecial": "secret"}',
            "disallowedSpecial: must be one of DISALLOWED_SPECIAL_REJECT, DISALLOWED_SPECIAL_AS_",
        ),
        (b'{"disallowedSpecial": "\\ud800"}', "disallowedSpecial: must be one of DISALLOWED_SPEC"),
        (b"[]", "request: the JSON is not an object"),
        (b'""', "request: the JSON is not an object"),
        (b'{"text": secret}', "request: not JSON at line 1 column 10"),
        (b'\xef\xbb\xbf{"text": "a"}', "request: the JSON starts with a byte order mark"),
        (b'{"limit": %s}' % (b"1" * 5000), "request: the JSON holds a number that is too long"),
    ],
)
def test_an_error_of_json_names_the_field_or_place_and_no_value(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidField) as caught:
        json.read(raw, tokenizer_pb2.CountRequest)
    message = f"{caught.value.field}: {caught.value.problem}"
    assert message.startswith(said)
    assert "secret" not in message.removeprefix("secret: unknown field")


def test_an_unknown_field_of_a_request_without_fields_is_said_to_be_one() -> None:
    with pytest.raises(InvalidField) as caught:
        json.read(b'{"encoding": ""}', tokenizer_pb2.ListEncodingsRequest)
    assert caught.value.problem == "unknown field; it has no fields"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"messages": {"role": "user"}}', "messages: must be a list"),
        (
            b'{"messages": [{"content": "secret"}]}',
            'messages[0].content: must be a list, such as [{"text": "hello"}]',
        ),
        (b'{"messages": [{"role": 5}]}', "messages[0].role: must be a string"),
        (b'{"options": 5}', "options: must be an object"),
        (b'{"options": {"formatOptions": []}}', "options.formatOptions: must be an object"),
        (b'{"options": {"formatOptions": {"a": 5}}}', "options.formatOptions['a']: must be a stri"),
        (b'{"options": {"formatOptions": {"a": "", "a": ""}}}', "options.formatOptions['a']: is"),
        (b'{"options": {"pastReasoning": 1e999}}', "options.pastReasoning: must be one of PAST_RE"),
    ],
)
def test_an_error_of_a_chat_in_json_names_the_field(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidField) as caught:
        json.read(raw, chat_pb2.CountChatRequest)
    assert f"{caught.value.field}: {caught.value.problem}".startswith(said)


@given(
    st.builds(
        tokenizer_pb2.EncodeResponse,
        ids=st.lists(st.integers(0, 2**32 - 1), max_size=3),
        offsets=st.lists(st.integers(0, 2**32 - 1), max_size=3),
        encoding=st.text(st.characters(codec="utf-8"), max_size=8),
    )
    | st.builds(
        tokenizer_pb2.CountResponse, count=st.integers(0, 2**63), limit_exceeded=st.booleans()
    )
    | st.builds(tokenizer_pb2.DecodeResponse, text=st.text(st.characters(codec="utf-8")))
    | st.builds(tokenizer_pb2.DecodeResponse, data=st.binary(max_size=8))
    | st.builds(
        tokenizer_pb2.BatchCountResponse,
        results=st.lists(
            st.builds(tokenizer_pb2.CountResult, count=st.integers(0, 2**63))
            | st.builds(
                tokenizer_pb2.CountResult,
                error=st.builds(
                    text_pb2.Error,
                    code=st.integers(0, 16),
                    reason=st.text("ab", max_size=2),
                    metadata=st.dictionaries(st.text("ab"), st.text("ab"), max_size=2),
                ),
            ),
            max_size=2,
        ),
    )
    | st.builds(
        token_pb2.GetTokenResponse,
        kind=st.sampled_from(token_pb2.TokenKind.values()),
        parts=st.lists(
            st.builds(
                token_pb2.TokenPart,
                spelling=st.binary(max_size=4),
                order=st.floats(),
            ),
            max_size=2,
        ),
    )
    | st.builds(
        chat_pb2.CountChatResponse,
        message_counts=st.lists(st.integers(0, 2**63), max_size=3),
        accuracy=st.sampled_from(chat_pb2.Accuracy.values()),
    )
)
@example(token_pb2.GetTokenResponse(parts=[token_pb2.TokenPart(order=-math.inf)]))
def test_answers_are_written_as_protobuf_writes_them(answer: Message) -> None:
    written = json.write(answer.SerializeToString(), type(answer))
    expected = json_format.MessageToDict(answer, always_print_fields_with_no_presence=True)
    assert standard.loads(written) == expected
