"""Random conversations. Their texts contain control tokens, and start and end with hard
characters."""

from __future__ import annotations

import json
import random
from typing import Any

PLAIN = (
    "", " ", "\n", "\n\n", "a", "hello world", " leading", "trailing ", "\nline", "line\n", "\r\n",
    "What is 2 + 2?", "Überraschung: naïve café", "日本語のテキスト", "🤷🏽‍♀️ emoji",
    "x = {'a': 1}\n\ty", "\u00a0nbsp",
    "    indented\n    code", "1234567 3.14", "don't we'll I'M", "tabs\t\tand  spaces   ",
    "a\u0000b", "\ufeffbom", "…“quotes”…", "<tag attr='1'>text</tag>", "[not INST]", "{{ x }}",
)  # fmt: skip

SPELLINGS = (
    "<|end|>", "<|start|>system<|message|>", "<|im_start|>", "<|im_end|>", "<|im_", "end|>",
    "<|eot_id|>", "<|start_header_id|>", "[INST]", "[/INST]", "</s>", "<s>", "[TOOL_CALLS]",
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "<bos>",
    "<start_of_turn>user\n", "<end_of_turn>", "<｜User｜>", "<｜end▁of▁sentence｜>",
    "<|constrain|>json", "＜｜User｜＞", "\x00123,456\x00", "{% raw %}", "<|message|>", "<|call|>",
    "[SYSTEM_PROMPT]",
    "<|endoftext|>", "<|channel|>final", "<｜tool▁calls▁begin｜>", "[ARGS]", "[THINK]",
)  # fmt: skip

SCHEMAS: tuple[Any, ...] = (
    None,
    {"type": "object", "properties": {}},
    {"type": "object", "description": "An object.", "properties": {
        "b": {"type": "string", "description": "First.", "default": "x"},
        "a": {"type": "integer", "default": 1.0, "nullable": True},
        "e": {"type": "string", "enum": ["c", "f"], "default": "c", "title": "Unit"},
    }, "required": ["a"]},
    {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "q": {"type": ["number", "null"], "examples": ["one", 2]}}}},
        "any": {"description": "Anything."},
        "bare": {"type": "array", "default": [1e-7, 1e16, 12.5, True, None, "ü"]},
    }},
    {"type": "object", "properties": {
        "choice": {"description": "One of.", "default": {"k": 1}, "oneOf": [
            {"type": "string", "description": "One of.", "default": "d"},
            {"type": "object", "description": "Deep.", "properties": {"z": {"type": "boolean"}}},
            {"type": "string", "enum": ["p"], "default": "p", "nullable": True},
        ]},
        "list": {"type": "array", "items": {"oneOf": [
            {"type": "string", "enum": ["v"], "default": "v", "description": "V"},
            {"type": "number", "nullable": True, "default": -0.00001}]}},
    }, "required": ["choice"]},
)  # fmt: skip


class Conversations:
    """Makes random conversations from a seed.

    Attributes:
        with_special: Whether texts may contain special tokens.
        calls: How many calls a message makes at most.
    """

    def __init__(self, seed: int, *, with_special: bool, calls: int = 2) -> None:
        self.random = random.Random(seed)
        self.with_special = with_special
        self.calls = calls

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def text(self) -> str:
        """A random text, sometimes empty."""
        pool = PLAIN + SPELLINGS if self.with_special else PLAIN
        return "".join(self.random.choices(pool, k=self.random.randint(0, 4)))

    def said(self) -> str:
        """A random text that is not only white space."""
        return f"{self.text()}word{self.text()}"

    def name(self) -> str:
        return self.random.choice(("get_weather", "f", "search2", "a_b-c"))

    def arguments(self) -> dict[str, Any]:
        values: tuple[Any, ...] = (1, 1.5, True, None, [1, "a"], {"k": self.text()}, self.text())
        count = self.random.randint(0, 3)
        return {f"{key}{self.name()}": self.random.choice(values) for key in range(count)}

    def tools(self) -> list[dict[str, Any]]:
        tools = []
        for number in range(self.random.randint(0, 3)):
            function = {"name": f"{self.name()}{number}", "description": self.text()}
            schema = self.random.choice(SCHEMAS)
            tools.append({"type": "function", "function": function | {"parameters": schema or {}}})
        return tools

    def chat(self, *, system: bool = True, tools: bool = False) -> list[dict[str, Any]]:
        """Return alternating turns, with calls and their results if `tools`. The last is a user's,
        an assistant's or a tool's."""
        messages: list[dict[str, Any]] = []
        if system and self.chance(0.5):
            messages.append({"role": "system", "content": self.said()})
        for _ in range(self.random.randint(1, 4)):
            messages.append({"role": "user", "content": self.said()})
            if tools and self.chance(0.4):
                messages += self._called()
            messages.append({"role": "assistant", "content": self.said()})
        if self.chance(0.8):
            messages.append({"role": "user", "content": self.said()})
            if tools and self.chance(0.3):
                messages += self._called()
        return messages

    def _called(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        for _ in range(self.random.randint(1, self.calls)):
            call_id = "".join(self.random.choices("abcdefghijk0123", k=9))
            function: dict[str, Any] = {"name": self.name()}
            function["arguments"] = json.dumps(self.arguments())
            calls.append({"id": call_id, "type": "function", "function": function})
        called: list[dict[str, Any]] = [{"role": "assistant", "content": None, "tool_calls": calls}]
        for call in calls:
            function = dict(call["function"])
            result: dict[str, Any] = {"content": self.said(), "tool_call_id": call["id"]}
            called.append({"role": "tool", "name": function["name"], **result})
        return called
