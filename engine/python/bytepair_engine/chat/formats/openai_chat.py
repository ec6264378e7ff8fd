"""Chats with OpenAI's hosted models, counted by OpenAI's published rules."""

from __future__ import annotations

from typing import Any, Final

from bytepair_engine.chat.errors import ChatFormatMismatch, InvalidChat
from bytepair_engine.chat.format import Accuracy, Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, TOOLS, Layout
from bytepair_engine.chat.messages import Tool
from bytepair_engine.encoding import Encoding
from bytepair_engine.vocabulary.names import Names

_PER_MESSAGE: Final = 3
_PER_NAME: Final = 1
_REPLY: Final = 3
#: Tokens per function, by the id of <|endofprompt|> in cl100k_base and in o200k_base.
_FUNCTION: Final = {100276: 10, 200018: 7}
_PROPERTIES: Final = 3
_PROPERTY: Final = 3
_ENUM: Final = -3
_ENUM_ITEM: Final = 3
_FUNCTIONS_END: Final = 12

_IN, _OUT = "in the audience", "not in it"
#: The models of the audience, as OpenAI, Azure and fine-tuning name them, and others with names
#: like theirs. An encoding's own name is that of no other model.
_MODELS: Final = Names(
    {
        **dict.fromkeys(("cl100k_base", "o200k_base"), _IN),
        **dict.fromkeys(
            ("gpt-3.5-turbo", "gpt-3.5-turbo-*", "gpt-35-turbo", "gpt-35-turbo-*"), _IN
        ),
        **dict.fromkeys(("gpt-4", "gpt-4-*", "gpt-4o", "gpt-4o-*"), _IN),
        **dict.fromkeys(("ft:gpt-3.5-turbo*", "ft:gpt-4-*", "ft:gpt-4:*", "ft:gpt-4o*"), _IN),
        # The first has a rule of its own; the others do not answer chats of text.
        **dict.fromkeys(("gpt-3*5-turbo-0301", "gpt-3*5-turbo-instruct*", "gpt-4-base*"), _OUT),
        **dict.fromkeys(("gpt-4o*-audio*", "gpt-4o*-realtime*", "gpt-4o*-search*"), _OUT),
        **dict.fromkeys(("gpt-4o*-transcribe*", "gpt-4o*-tts*"), _OUT),
    }
)


class OpenAiChat(ChatFormat):
    """3 tokens per message, 1 per name, 3 for the reply, and the tokens of the texts. With tools
    or tool calls the count is an estimate, because OpenAI has not published their rendering."""

    name = "openai-chat"
    source = (
        "openai/openai-cookbook examples/How_to_count_tokens_with_tiktoken.ipynb @c81359cd: "
        "3 a message, 1 a name, 3 for the reply; tools by the table of its section 7"
    )
    audience = "gpt-3.5-turbo, gpt-4, gpt-4o and gpt-4o-mini as hosted by OpenAI"
    additive = True
    encodes = False
    roles = ("system", "developer", "user", "assistant", "tool")
    fields = frozenset({"name", "tool_calls", "tool_call_id"})
    tools = True

    def is_for(self, model: str) -> bool:
        return _MODELS.find(model) == _IN

    def check_new(self, encoding: Encoding) -> None:
        tokens = encoding.special_tokens
        # The models of o200k_harmony are not hosted, and have a format of their own.
        if tokens.get("<|endofprompt|>") not in _FUNCTION or "<|message|>" in tokens:
            raise ChatFormatMismatch(self.name, encoding.name, ())

    def accuracy_of(self, chat: Chat) -> Accuracy:
        called = [message.tool_calls or message.role == "tool" for message in chat.messages]
        return "estimate" if chat.tools or any(called) else super().accuracy_of(chat)

    def layout(self, chat: Chat, encoding: Encoding) -> Layout:
        layout = super().layout(chat, encoding)
        if chat.tools:
            layout.owner = TOOLS
            each = _FUNCTION[encoding.special_tokens["<|endofprompt|>"]]
            layout.add(each * len(chat.tools))
        return layout

    def render(self, chat: Chat) -> Layout:
        if chat.options.continue_final_message:
            raise InvalidChat(len(chat.messages) - 1, "continue_final_message", "not_hosted")
        layout = Layout()
        for index, message in enumerate(chat.messages):
            layout.owner = index
            layout.add(_PER_MESSAGE, message.role, *message.parts)
            if message.name is not None:
                layout.add(_PER_NAME, message.name)
            for call in message.tool_calls:
                layout.add(call.name, call.arguments)
        if chat.tools:
            layout.owner = TOOLS
            for number, tool in enumerate(chat.tools):
                _add_tool(layout, tool, number)
            layout.add(_FUNCTIONS_END)
        if chat.options.prompts:
            layout.owner = FRAME
            layout.add(_REPLY)
        return layout


def _add_tool(layout: Layout, tool: Tool, number: int) -> None:
    layout.add(f"{tool.name}:{_without_stop(tool.description)}")
    properties = _mapping((tool.parameters or {}).get("properties"), number)
    if properties:
        layout.add(_PROPERTIES)
    for key, value in properties.items():
        schema = _mapping(value, number)
        layout.add(_PROPERTY)
        if "enum" in schema:
            items = schema["enum"]
            if not isinstance(items, (list, tuple)):
                raise InvalidChat(number, "tools.parameters", "enum_not_a_list")
            layout.add(_ENUM)
            for item in items:
                layout.add(_ENUM_ITEM, item if isinstance(item, str) else str(item))
        kind, description = schema.get("type", ""), schema.get("description", "")
        layout.add(f"{key}:{kind}:{_without_stop(str(description))}")


def _mapping(value: Any, number: int) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise InvalidChat(number, "tools.parameters", "not_an_object")
    return value or {}


def _without_stop(text: str) -> str:
    return text.removesuffix(".")
