"""The JSON that chat formats read and write: escapes, numbers, and the limit of nesting."""

from __future__ import annotations

import json
from bisect import bisect
from functools import partial
from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.chat import (
    InvalidChat,
    count_chat,
    json_text,
)
from bytepair_engine.chat.messages import read_messages
from support.chats import encoding_for


@pytest.mark.parametrize(
    "text",
    ["{", "NaN", "1e999", '"\\ud800"', "[" * 66 + "]" * 66, "[" * 99999],
    ids=["open", "NaN", "too large", "surrogate", "nested", "unreadable"],
)
def test_text_that_is_no_json_for_every_reader_is_rejected(text: str) -> None:
    call = {"name": "f", "arguments": text}
    with pytest.raises(InvalidChat) as caught:
        read_messages([{"role": "assistant", "tool_calls": [call]}])
    assert (caught.value.field, caught.value.rule) == ("tool_calls[0].arguments", "not_json")


CALL = {"name": "f", "arguments": "{}"}


def count_with_result(name: str, result: str) -> int:
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{**CALL, "id": "abcdefghi"}]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": result},
    ]
    return count_chat(chat, encoding=encoding_for(name), format=name).count


@pytest.mark.parametrize("name", ["mistral-v2", "mistral-v3"])
def test_a_result_that_escapes_a_lone_surrogate_is_rejected(name: str) -> None:
    """These formats write JSON anew, without escapes. No text can hold a lone surrogate: with
    their tokenizers, of sentencepiece, mistral-common fails too. It does not keep the escape."""
    count = partial(count_with_result, name)
    for result in ('"\\ud800"', '{"\\udc00": 1}'):
        with pytest.raises(InvalidChat, match="lone surrogate") as rejected:
            count(result)
        found = rejected.value
        assert (found.index, found.field, found.rule) == (2, "content", "not_json")
    assert count('"\\ud83d\\ude42"') == count('"🙂"')
    assert count("\\ud800")  # this is not JSON, and so a text as it is


def is_read(depth: int) -> bool:
    try:
        json.loads("[" * depth + "]" * depth)
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("name", ["mistral-v2", "mistral-v3"])
def test_a_result_that_is_nested_too_deeply_is_rejected(name: str) -> None:
    """At some depth Python reads the result, and cannot write it one level deeper."""
    # The limit is another one in each version of Python, and varies a little with the caller.
    deepest = bisect(range(1 << 15), False, key=lambda depth: not is_read(depth))
    rejected = set()
    for depth in range(deepest - 50, deepest + 50):
        try:
            count_with_result(name, "[" * depth + "]" * depth)
        except InvalidChat as error:
            rejected.add((error.index, error.field, error.rule))
    assert rejected == {(2, "content", "json_too_large")}


def test_the_largest_integers_that_python_reads_are_accepted() -> None:
    text = f'{{"a": [{"9" * 4300}, -{"9" * 4300}]}}'
    (message,) = read_messages([{"role": "user", "tool_calls": [{**CALL, "arguments": text}]}])
    assert message.tool_calls[0].arguments == text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-(2**63), "-9223372036854775808"),
        (-(2**63) - 1, "-9.223372036854776e18"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "1.8446744073709552e19"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1234567890123456.8, "1234567890123456.8"),
        (12345678901234568.0, "1.2345678901234568e16"),
        (0.00001, "0.00001"),
        (0.0000015, "1.5e-6"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (-2.5, "-2.5"),
        ([True, None, {"a": "é"}], '[true,null,{"a":"é"}]'),
    ],
)
def test_compact_json_is_that_of_serde_json(value: object, written: str) -> None:
    assert json_text.dumps_compact(value) == written


def test_json_is_accepted_up_to_the_limit_of_nesting() -> None:
    assert json_text.parse("[" * 65 + "]" * 65)


def test_harmony_rejects_a_default_that_no_float_can_hold() -> None:
    chat = [{"role": "user", "content": ""}]
    encoding = get_encoding("o200k_harmony")

    def count(default: int) -> int:
        properties = {"a": {"type": "integer", "default": default}}
        tool = {"name": "f", "parameters": {"type": "object", "properties": properties}}
        return count_chat(chat, encoding=encoding, format="harmony", tools=[tool]).count

    assert count(10**300)
    for default in (10**309, -(10**309)):
        with pytest.raises(InvalidChat) as rejected:
            count(default)
        assert (rejected.value.field, rejected.value.rule) == ("tools", "not_json")
