"""Generates chats of every structure that a format has, with any text in any field."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import hypothesis.strategies as st
from bytepair_engine import Encoding, extend_encoding, get_encoding
from bytepair_engine.chat import get_chat_format, list_chat_formats

#: Texts that imitate structure, for every format, and halves of them.
ADVERSARIAL = [
    *sorted({name for f in list_chat_formats() for name in get_chat_format(f).controls}),
    "<|im_", "end|>", "<|", "|>", "＜｜User｜＞", "\x00123,456\x00", "[INST]", "[/INST]", "<s>",
    "</think>", "<think>", "{{ messages }}", "{% raw %}", "{% endraw %}", "\n", " ", "\r", "",
    "\n\n", "user<|message|>", "</tool_response>", "<tool_response>", "</tool_call>",
    '"}\n</tool_call><|im_end|>', "assistant", "system", "null", "[]", "0",
]  # fmt: skip


@cache
def encoding_for(format_name: str) -> Encoding:
    """Return a built-in encoding with the control tokens of a format."""
    base = get_encoding("cl100k_base")
    chosen = get_chat_format(format_name)
    needed = chosen.controls | chosen.optional_controls
    missing = sorted(needed - base.special_tokens.keys())
    return extend_encoding(base, missing, name=format_name) if missing else base


texts = st.lists(st.sampled_from(ADVERSARIAL) | st.text(max_size=5), max_size=3).map("".join)


class Odd(str):
    """Text that is written differently, as a member of an Enum is."""

    def __str__(self) -> str:
        return "odd"

    def __format__(self, spec: str) -> str:
        return "odd"


#: The structure of a message: its role, and the fields that are set.
Structure = dict[str, Any]


def structures(format_name: str) -> st.SearchStrategy[list[Structure]]:
    """Generate chats that the format can express, with "" for every text."""
    chosen = get_chat_format(format_name)
    has_tools = "tool_calls" in chosen.fields
    strict = format_name.startswith(("gemma", "mistral"))  # these reject other turns

    @st.composite
    def chats(draw: Callable[[Any], Any]) -> list[Structure]:
        chat: list[Structure] = []
        if "system" in chosen.roles and draw(st.booleans()):
            chat.append({"role": "system", "content": ""})
        if "structured" in chosen.fields and draw(st.booleans()):
            chat.append({"role": "system", "structured": "system_content"})
            chat.append({"role": "developer", "structured": "developer_content"})
        for _ in range(draw(st.integers(1, 3))):
            user: Structure = {"role": "user", "content": ""}
            if "name" in chosen.fields and draw(st.booleans()):
                user["name"] = ""
            chat.append(user)
            if has_tools and draw(st.booleans()):
                # mistral-v2 accepts one result per message with calls.
                count = 1 if format_name == "mistral-v2" else draw(st.integers(1, 2))
                chat.append({"role": "assistant", "content": None, "calls": count})
                chat += [{"role": "tool", "content": "", "result": n} for n in range(count)]
            answer: Structure = {"role": "assistant", "content": ""}
            if "reasoning" in chosen.fields and draw(st.booleans()):
                answer["reasoning"] = ""
            if "channel" in chosen.fields and draw(st.booleans()):
                kind = draw(st.sampled_from(["constrain", "content_type"]))
                answer |= {"channel": "other", "recipient": "", kind: ""}
                answer.pop("reasoning", None)
            chat.append(answer)
            if not strict and draw(st.booleans()):
                chat.append({"role": "assistant", "content": ""})
        if draw(st.booleans()):
            chat.append({"role": "user", "content": ""})
        return chat

    return chats()


def structured(kind: str, text: Callable[[], str]) -> dict[str, Any]:
    """Return the system or developer content of harmony, with each text from `text`."""
    tool = {"name": text(), "description": text(), "parameters": {"type": "object", "properties": {
        text(): {"type": "string", "description": text(), "enum": [text()], "default": text()}
    }}}  # fmt: skip
    tools = {"browser": {"name": text(), "description": text(), "tools": [tool]}}
    if kind == "developer_content":
        return {"type": kind, "instructions": text(), "tools": tools}
    channels = {"valid_channels": [text()], "channel_required": True}
    return {
        "type": kind,
        "model_identity": text(),
        "knowledge_cutoff": text(),
        "conversation_start_date": text(),
        "channel_config": channels,
        "tools": tools,
    }


def filled(chat: list[Structure], text: Callable[[], str], json_text: Callable[[], str]) -> Any:
    """Return the messages of a structure, with each text from `text`."""
    messages = []
    for number, structure in enumerate(chat):
        message: dict[str, Any] = {"role": structure["role"]}
        for field in ("content", "name", "reasoning", "recipient", "constrain"):
            if field in structure:
                message[field] = None if structure[field] is None else text()
        if "content_type" in structure:
            # A text that begins with <|constrain|> is rejected.
            message["content_type"] = f"t{text()}"
        if "structured" in structure:
            message["content"] = [structured(structure["structured"], text)]
        if "channel" in structure:
            # `analysis` and `final` are structure.
            message["channel"] = f"c{text()}"
        if "calls" in structure:
            message["tool_calls"] = [
                {
                    "id": f"{number:04}{call:05}",
                    "type": "function",
                    "function": {"name": f"n{text()}", "arguments": json_text()},
                }
                for call in range(structure["calls"])
            ]
        if "result" in structure:
            call = number - 1 - structure["result"]
            message["tool_call_id"] = f"{call:04}{structure['result']:05}"
            message["name"] = f"n{text()}"
        messages.append(message)
    return messages
