"""Mistral's instruct formats, v1 to v13, by mistral-common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bytepair_engine.chat.errors import NO_COUNTED_PART, InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.json_text import dumps, text_of
from bytepair_engine.chat.layout import TOOLS, Control, Layout
from bytepair_engine.chat.messages import Message, Tool, ToolCall

BOS: Final = Control("<s>")
EOS: Final = Control("</s>")
INST: Final = Control("[INST]")
INST_END: Final = Control("[/INST]")
OFFERED: Final = Control("[AVAILABLE_TOOLS]")
OFFERED_END: Final = Control("[/AVAILABLE_TOOLS]")
CALLS: Final = Control("[TOOL_CALLS]")
RESULTS: Final = Control("[TOOL_RESULTS]")
RESULTS_END: Final = Control("[/TOOL_RESULTS]")
SYSTEM: Final = Control("[SYSTEM_PROMPT]")
SYSTEM_END: Final = Control("[/SYSTEM_PROMPT]")
RESULT_CONTENT: Final = Control("[TOOL_CONTENT]")
CALL_ID: Final = Control("[CALL_ID]")
ARGS: Final = Control("[ARGS]")
THINK: Final = Control("[THINK]")
THINK_END: Final = Control("[/THINK]")

_V2: Final = (INST, INST_END, OFFERED, OFFERED_END, CALLS, RESULTS, RESULTS_END)
_V7: Final = (*_V2, SYSTEM, SYSTEM_END, RESULT_CONTENT)
_CALL_ID: Final = re.compile("[a-zA-Z0-9]{9}")


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message and its context.

    Attributes:
        chat: The whole chat.
        users: The indices of the user messages.
        index: The index of the message.
        message: The message.
        results: Number of tool results directly before the message.
    """

    chat: Chat
    users: Sequence[int]
    index: int
    message: Message
    results: int

    @property
    def text(self) -> str:
        """The content of the message as one text; see `_text`."""
        return _text(self.index, self.message)


class MistralV1(ChatFormat):
    """v1: [INST] is text, and the system text is part of the first user message. No tools.

    In all versions user and assistant messages must alternate; mistral-common would join the
    texts of consecutive messages with the same role.
    """

    name = "mistral-v1"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v1"
    audience = "Mistral models of this tokenizer version"
    controls = frozenset({BOS.name, EOS.name})

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        layout.add(BOS)
        self._check_order(chat)
        users = [i for i, message in enumerate(chat.messages) if message.role == "user"]
        if chat.tools and not users:
            raise InvalidChat(None, "tools", "tools_without_user")
        results = 0
        for index, message in enumerate(chat.messages):
            layout.owner = index
            turn = _Turn(chat, users, index, message, results)
            results = results + 1 if message.role == "tool" else 0
            if message.role == "user":
                self._user(layout, turn)
            elif message.role == "assistant":
                self._assistant(layout, turn)
            elif message.role == "tool":
                self._result(layout, turn)
            else:
                self._system(layout, turn)
        return layout

    def _check_order(self, chat: Chat) -> None:
        expected: tuple[str, ...] = ("user",)
        systems = 0
        for index, message in enumerate(chat.messages):
            if message.role == "system":
                if index != systems:
                    raise InvalidChat(index, "role", "system_not_at_start")
                systems += 1
                continue
            if message.role not in expected:
                raise InvalidChat(index, "role", "roles_must_alternate")
            if message.role == "assistant":
                expected = ("user", "tool") if message.tool_calls else ("user",)
            else:
                expected = ("assistant", "tool") if message.role == "tool" else ("assistant",)
        if systems == len(chat.messages) and systems:
            raise InvalidChat(systems - 1, "role", "system_without_user")

    def _user(self, layout: Layout, turn: _Turn) -> None:
        parts: list[tuple[int, str]] = [(turn.index, "[INST] ")]
        if turn.index == turn.users[0]:
            parts += _system_parts(turn.chat)
        layout.add_shared([*parts, (turn.index, turn.text + " [/INST]")])

    def _assistant(self, layout: Layout, turn: _Turn) -> None:
        layout.add(turn.text)
        self._close(layout, turn)

    def _close(self, layout: Layout, turn: _Turn) -> None:
        if turn.index < len(turn.chat.messages) - 1 or not turn.chat.options.continue_final_message:
            layout.add(EOS)

    def _system(self, layout: Layout, turn: _Turn) -> None:
        """Add nothing: the system text is part of a user message."""

    def _result(self, layout: Layout, turn: _Turn) -> None:
        """Add nothing: this version rejects tool results."""


class MistralV2(MistralV1):
    """v2: the tools come before the last user message, which contains the system text. Calls and
    results of earlier turns are dropped. A message with calls has one result."""

    name = "mistral-v2"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v2"
    controls = frozenset({BOS.name, EOS.name, *(token.name for token in _V2)})
    roles = ("system", "user", "assistant", "tool")
    fields = frozenset({"tool_calls", "tool_call_id"})
    tools = True
    #: Whether the tools come before the first user message; else before the last one.
    tools_first = False
    #: Whether calls and results of earlier turns are dropped.
    drops_old_calls = True
    #: Whether the system text is part of the last user message.
    system_in_user = True
    #: Whether a message may have both content and calls.
    content_with_calls = False

    def _user(self, layout: Layout, turn: _Turn) -> None:
        if turn.chat.tools and turn.index == turn.users[0 if self.tools_first else -1]:
            layout.owner = TOOLS
            tools = [_document(number, tool) for number, tool in enumerate(turn.chat.tools)]
            layout.add(OFFERED, dumps(tools), OFFERED_END)
            layout.owner = turn.index
        is_host = self.system_in_user and turn.index == turn.users[-1]
        parts = _system_parts(turn.chat) if is_host else []
        layout.add(INST)
        layout.add_shared([*parts, (turn.index, turn.text)])
        layout.add(INST_END)

    def _assistant(self, layout: Layout, turn: _Turn) -> None:
        message = turn.message
        if message.tool_calls and self.drops_old_calls and turn.index < turn.users[-1]:
            return
        if message.tool_calls and message.content is not None and not self.content_with_calls:
            raise InvalidChat(turn.index, "content", "content_and_tool_calls")
        self._content(layout, turn)
        for at, call in enumerate(message.tool_calls):
            self._check_call(turn.index, at, call)
        if message.tool_calls:
            self._calls(layout, message.tool_calls)
        self._close(layout, turn)

    def _content(self, layout: Layout, turn: _Turn) -> None:
        layout.add(turn.text.rstrip(" "))

    def _check_call(self, index: int, at: int, call: ToolCall) -> None:
        """Raise InvalidChat if the version cannot render a call."""

    def _calls(self, layout: Layout, calls: Sequence[ToolCall]) -> None:
        layout.add(CALLS, dumps([self._call(call) for call in calls]))

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {"name": call.name, "arguments": json.loads(call.arguments)}

    def _result(self, layout: Layout, turn: _Turn) -> None:
        message = turn.message
        if turn.results:
            raise InvalidChat(turn.index, "role", "several_results")
        if turn.index < turn.users[-1]:
            return
        written = _written(turn, lambda content: [{"name": message.name, "content": content}])
        layout.add(RESULTS, written, RESULTS_END)


class MistralV3(MistralV2):
    """v3: calls have ids, and none is dropped."""

    name = "mistral-v3"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v3"
    drops_old_calls = False

    def _check_call(self, index: int, at: int, call: ToolCall) -> None:
        _check_id(index, f"tool_calls[{at}].id", call.id)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {**super()._call(call), "id": call.id}

    def _result(self, layout: Layout, turn: _Turn) -> None:
        message = turn.message
        call_id = _check_id(turn.index, "tool_call_id", message.tool_call_id)
        written = _written(turn, lambda content: {"content": content, "call_id": call_id})
        layout.add(RESULTS, written, RESULTS_END)


class MistralV7(MistralV3):
    """v7: separate system messages; the id of a result comes before its content."""

    name = "mistral-v7"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v7"
    controls = frozenset({BOS.name, EOS.name, *(token.name for token in _V7)})
    content_with_calls = True
    system_in_user = False

    def _system(self, layout: Layout, turn: _Turn) -> None:
        layout.add(SYSTEM, turn.text, SYSTEM_END)

    def _result(self, layout: Layout, turn: _Turn) -> None:
        message = turn.message
        call_id = _check_id(turn.index, "tool_call_id", message.tool_call_id)
        layout.add(RESULTS, call_id, RESULT_CONTENT, turn.text, RESULTS_END)


class MistralV11(MistralV7):
    """v11: each call has its own control tokens."""

    name = "mistral-v11"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v11"
    controls = frozenset({*MistralV7.controls, CALL_ID.name, ARGS.name})

    def _calls(self, layout: Layout, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            arguments = dumps(json.loads(call.arguments))
            layout.add(CALLS, call.name, CALL_ID, call.id, ARGS, arguments)


class MistralV13(MistralV11):
    """v13: the tools come before the first user message; no ids; reasoning between [THINK] and
    [/THINK]."""

    name = "mistral-v13"
    source = "mistralai/mistral-common tokens/tokenizers/instruct.py @bc022b9, v13"
    controls = frozenset({*MistralV7.controls, ARGS.name}) - {RESULT_CONTENT.name}
    optional_controls = frozenset({THINK.name, THINK_END.name})
    fields = frozenset({"tool_calls", "tool_call_id", "reasoning"})
    tools_first = True

    def _content(self, layout: Layout, turn: _Turn) -> None:
        if turn.message.reasoning is None:
            super()._content(layout, turn)
        else:
            layout.add(THINK, turn.message.reasoning, THINK_END, turn.text)

    def _calls(self, layout: Layout, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            layout.add(CALLS, call.name, ARGS, dumps(json.loads(call.arguments)))

    def _result(self, layout: Layout, turn: _Turn) -> None:
        message = turn.message
        number = turn.results
        caller = turn.index - number - 1
        calls = turn.chat.messages[caller].tool_calls if caller >= 0 else ()
        # Without ids, results must be in the order of the calls. mistral-common would sort them.
        if number >= len(calls) or calls[number].id != message.tool_call_id:
            raise InvalidChat(turn.index, "tool_call_id", "results_not_in_the_order_of_calls")
        layout.add(RESULTS, turn.text, RESULTS_END)


def _system_parts(chat: Chat) -> list[tuple[int, str]]:
    """Return the texts of the system messages, each with the separator after it."""
    texts = [
        (index, _text(index, message))
        for index, message in enumerate(chat.messages)
        if message.role == "system"
    ]
    return [(index, f"{text}\n\n") for index, text in texts if text]


def _text(index: int, message: Message) -> str:
    """Return the content as one text; raise InvalidChat if a part is counted."""
    texts = []
    for at, part in enumerate(message.parts):
        if not isinstance(part, str):
            raise InvalidChat(index, f"content[{at}]", "part_not_supported", NO_COUNTED_PART)
        texts.append(part)
    return "\n\n".join(filter(None, texts)) if len(texts) > 1 else "".join(texts)


def _written(turn: _Turn, document: Callable[[Any], Any]) -> str:
    """Return the JSON of a document with the content of a result: parsed if it is JSON, else as
    text."""
    text = turn.text
    value: Any = text or {}
    try:
        with suppress(json.JSONDecodeError):
            value = json.loads(text)
        written = dumps(document(value))
    except (RecursionError, ValueError):
        raise InvalidChat(turn.index, "content", "json_too_large") from None
    if value is not text and "\\u" in text and not text_of(value):
        raise InvalidChat(turn.index, "content", "not_json", "it escapes a lone surrogate")
    return written


def _check_id(index: int, field: str, call_id: str | None) -> str:
    if call_id is None or not _CALL_ID.fullmatch(call_id):
        raise InvalidChat(index, field, "call_id_not_9_letters_and_digits")
    return call_id


def _document(number: int, tool: Tool) -> dict[str, Any]:
    if tool.parameters is None:
        raise InvalidChat(number, "tools", "tool_without_parameters")
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
