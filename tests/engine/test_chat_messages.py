"""Which messages and tools a chat may have, and the errors of others."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.chat import InvalidChat, count_chat
from bytepair_engine.chat.messages import Message, read_messages, read_tools


def test_advice_about_a_part_is_about_its_type() -> None:
    for part, advice in (
        ({"type": "counted_tokens", "tokens": -5}, "tokens must be an int of 0 or more"),
        ({"type": "text", "text": 5}, "text must be a str"),
        ({"type": "image_url"}, "count it yourself"),
    ):
        with pytest.raises(InvalidChat, match=advice):
            read_messages([{"role": "user", "content": [part]}])


@pytest.mark.parametrize(
    ("message", "field", "rule"),
    [
        ({"role": "nobody", "content": ""}, "role", "role_unknown"),
        ({"content": ""}, "role", "not_a_string"),
        ({"role": "user", "content": 1}, "content", "not_text_or_parts"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "content[0]", "part_not_supported"),
        ({"role": "user", "content": "", "mood": "x"}, "mood", "field_unknown"),
        ({"role": "user", "content": "", "name": 3}, "name", "not_a_string"),
        ({"role": "tool", "content": ""}, "tool_call_id", "tool_result_without_call"),
        (
            {"role": "user", "content": "", "content_type": "<|constrain|>j"},
            "content_type",
            "use_constrain",
        ),
    ],
)  # fmt: skip
def test_a_chat_that_cannot_be_rendered_is_an_error(
    message: dict[str, Any], field: str, rule: str
) -> None:
    chat = [{"role": "user", "content": "fine"}, message]
    with pytest.raises(InvalidChat) as rejected:
        count_chat(chat, encoding=get_encoding("o200k_harmony"), format="harmony")
    assert (rejected.value.index, rejected.value.field, rejected.value.rule) == (1, field, rule)


def test_an_unknown_role_is_answered_with_the_roles_that_exist() -> None:
    chat = [{"role": "usr", "content": ""}]
    with pytest.raises(InvalidChat, match=r"harmony has the roles .*user") as rejected:
        count_chat(chat, encoding=get_encoding("o200k_harmony"), format="harmony")
    assert "usr" not in str(rejected.value)  # no message quotes text of a chat


CALL = {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ([], "message", "not_an_object"),
        ({"content": [{"type": "image", "text": "a"}]}, "content[0]", "part_not_supported"),
        ({"content": [{"type": "image", "tokens": 1}]}, "content[0]", "part_not_supported"),
        (
            {"content": ["a", {"type": "counted_tokens", "tokens": 1.0}]},
            "content[1]",
            "part_not_supported",
        ),
        (
            {"content": [{"type": "counted_tokens", "tokens": -1}]},
            "content[0]",
            "part_not_supported",
        ),
        ({"content": ["a", 1]}, "content[1]", "part_not_supported"),
        (
            {"content": [{"type": "counted_tokens", "tokens": (1 << 40) + 1}]},
            "content[0]",
            "counted_tokens_too_large",
        ),
        ({"reasoning": "", "reasoning_content": "a"}, "reasoning", "reasoning_given_twice"),
        ({"tool_calls": {}}, "tool_calls", "not_a_list"),
        ({"tool_calls": [CALL, "f"]}, "tool_calls[1]", "not_an_object"),
        ({"tool_calls": [{**CALL, "type": "custom"}]}, "tool_calls[0]", "not_a_function"),
        ({"tool_calls": [CALL, {"function": "f"}]}, "tool_calls[1]", "not_a_function"),
        ({"tool_calls": [{**CALL, "name": 1}]}, "tool_calls[0].name", "not_a_string"),
        ({"tool_calls": [{**CALL, "id": 1}]}, "tool_calls[0].id", "not_a_string"),
        ({"tool_calls": [{**CALL, "arguments": {1: 2}}]}, "tool_calls[0].arguments", "not_json"),
        (
            {"tool_calls": [{**CALL, "arguments": [10**4300]}]},
            "tool_calls[0].arguments",
            "not_json",
        ),
        (
            {"tool_calls": [{**CALL, "arguments": [-(10**4300)]}]},
            "tool_calls[0].arguments",
            "not_json",
        ),
        ({"weight": 0}, "weight", "field_unknown"),
    ],
)
def test_a_malformed_message_is_rejected(fields: Any, field: str, rule: str) -> None:
    message = {"role": "user", "content": "", **fields} if fields else fields
    with pytest.raises(InvalidChat) as rejected:
        read_messages([{"role": "user", "content": ""}, message])
    found = rejected.value
    assert (found.index, found.field, found.rule) == (1, field, rule)


@pytest.mark.parametrize(
    ("tool", "field", "rule"),
    [
        ("[]", "tools", "not_an_object"),
        ("{", "tools", "not_json"),
        ({"name": float("nan")}, "tools", "not_json"),
        ({"name": "f", "parameters": {"maximum": 10**4300}}, "tools", "not_json"),
        ({"type": "custom", "function": {"name": "f"}}, "tools", "not_a_function"),
        ({"function": "f"}, "tools", "not_a_function"),
        ({"name": 1}, "tools.name", "not_a_string"),
        ({"name": "f", "description": 1}, "tools.description", "not_a_string"),
        ({"name": "f", "parameters": []}, "tools.parameters", "not_an_object"),
    ],
)
def test_a_malformed_tool_is_rejected(tool: Any, field: str, rule: str) -> None:
    with pytest.raises(InvalidChat) as rejected:
        read_tools([{"name": "f"}, tool])
    found = rejected.value
    assert (found.index, found.field, found.rule) == (1, field, rule)


def test_parsed_messages_and_absent_fields_are_accepted() -> None:
    absent: dict[str, Any] = {"name": None, "tool_calls": [], "weight": None, "tags": []}
    counted = {"type": "counted_tokens", "tokens": 0}
    given = {"role": "user", "content": ["a", counted], "reasoning_content": "b", **absent}
    (message,) = read_messages([given])
    assert message == Message("user", ("a", 0), reasoning="b")
    assert message.text == "a"
    assert read_messages([message]) == (message,)
    tools = read_tools(['{"name": "f"}'])
    assert tools[0].description == ""
    assert read_tools(tools) == tools
