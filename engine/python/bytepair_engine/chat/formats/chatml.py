"""ChatML and its extensions in Qwen2.5 and Qwen3."""

from __future__ import annotations

from itertools import takewhile
from typing import ClassVar, Final

from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.json_text import dumps, parse
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout
from bytepair_engine.chat.messages import Message

START: Final = Control("<|im_start|>")
END: Final = Control("<|im_end|>")
CALL: Final = Control("<tool_call>")
CALL_END: Final = Control("</tool_call>")
RESPONSE: Final = Control("<tool_response>")
RESPONSE_END: Final = Control("</tool_response>")
THINK: Final = Control("<think>")
THINK_END: Final = Control("</think>")


class ChatMl(ChatFormat):
    """Plain ChatML: each message between <|im_start|> and <|im_end|>."""

    name = "chatml"
    source = "openai/openai-python chatml.md @v0.28, with the line breaks of its template"
    audience = "models trained on plain ChatML"
    additive = True
    joining = "runs"
    controls = frozenset({START.name, END.name})

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        last = len(chat.messages) - 1
        for index, message in enumerate(chat.messages):
            layout.owner = index
            layout.add(START, message.role + "\n", *message.parts)
            if index < last or not chat.options.continue_final_message:
                layout.add(END, "\n")
        add_prompt(layout, chat)
        return layout


def add_prompt(layout: Layout, chat: Chat) -> None:
    """Add the generation prompt if the options request it."""
    if chat.options.prompts:
        layout.owner = FRAME
        layout.add(START, "assistant\n")


class _Qwen(ChatFormat):
    """The common base of Qwen2.5 and Qwen3: tools in the system message, calls as JSON."""

    joining = "runs"
    roles = ("system", "user", "assistant", "tool")
    tools = True
    #: The default system text; None for no default system message.
    default_system: str | None = None
    #: Start and end of a tool result.
    response: tuple[Control | str, Control | str] = (RESPONSE, RESPONSE_END)

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        first = chat.messages[0] if chat.messages else None
        has_system = first is not None and first.role == "system"
        self._system(layout, chat, first if has_system else None)
        last = len(chat.messages) - 1
        last_user = _last_user(chat)
        open_end = chat.options.continue_final_message
        for index, message in enumerate(chat.messages):
            if index == 0 and has_system:
                continue
            layout.owner = index
            if message.role == "tool":
                before = index == 0 or chat.messages[index - 1].role != "tool"
                after = index == last or chat.messages[index + 1].role != "tool"
                if before:
                    layout.add(START, "user")
                layout.add("\n", self.response[0], "\n", *message.parts, "\n", self.response[1])
                if after:
                    layout.add(END, "\n")
                continue
            layout.add(START, message.role + "\n")
            if message.role == "assistant":
                self._assistant(layout, message, is_last=index == last, answers=index > last_user)
            elif message.tool_calls or message.reasoning is not None:
                raise InvalidChat(index, "role", "only_assistants_call_or_reason")
            else:
                layout.add(*message.parts)
            if index < last or not open_end:
                layout.add(END, "\n")
        add_prompt(layout, chat)
        return layout

    def _system(self, layout: Layout, chat: Chat, system: Message | None) -> None:
        if system is None and not chat.tools and self.default_system is None:
            return
        layout.owner = FRAME if system is None else 0
        if system is None and self.default_system is None:
            layout.owner = TOOLS
        layout.add(START, "system\n")
        if system is not None:
            layout.add(*system.parts)
        elif self.default_system is not None:
            layout.add(self.default_system)
        if chat.tools:
            owner, layout.owner = layout.owner, TOOLS
            if system is not None or self.default_system is not None:
                layout.add("\n\n")
            layout.add(
                "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
                "You are provided with function signatures within <tools></tools> XML tags:\n"
                "<tools>"
            )
            for tool in chat.tools:
                layout.add("\n" + dumps(tool.document))
            layout.add(
                "\n</tools>\n\nFor each function call, return a json object with function name "
                "and arguments within ",
                CALL,
                CALL_END,
                " XML tags:\n",
                CALL,
                '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
                CALL_END,
            )
            layout.owner = owner
        layout.add(END, "\n")

    def _assistant(self, layout: Layout, message: Message, *, is_last: bool, answers: bool) -> None:
        """Add the content of an assistant message; `answers`: it follows the last user message."""
        del is_last, answers
        layout.add(*message.parts)
        self._calls(layout, message)

    def _calls(self, layout: Layout, message: Message) -> None:
        lead = any(message.parts)
        for number, call in enumerate(message.tool_calls):
            if lead or number:
                layout.add("\n")
            arguments = self.arguments(call.arguments)
            body = f'\n{{"name": "{call.name}", "arguments": {arguments}}}\n'
            layout.add(CALL, body, CALL_END)

    def arguments(self, text: str) -> str:
        """Return the arguments of a call as the template writes them, from JSON text."""
        return text


class Qwen25(_Qwen):
    """Qwen2.5 Instruct."""

    name = "qwen2.5"
    source = "chat_template of Qwen/Qwen2.5-7B-Instruct tokenizer_config.json"
    audience = "Qwen2.5 Instruct models"
    controls = frozenset({START.name, END.name, CALL.name, CALL_END.name})
    fields = frozenset({"tool_calls", "tool_call_id"})
    default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    response = ("<tool_response>", "</tool_response>")

    def arguments(self, text: str) -> str:
        # The template writes objects by `tojson`; servers parse the text before.
        return dumps(parse(text))


class Qwen3(_Qwen):
    """Qwen3.

    The template also extracts reasoning from content that contains </think>. Here content is
    always text, and reasoning comes from the field `reasoning`. Reasoning is rendered only after
    the last user message, if it is set or the message is the last one.
    """

    name = "qwen3"
    source = "chat_template of Qwen/Qwen3-8B tokenizer_config.json"
    audience = "Qwen3 models"
    controls = frozenset(
        token.name
        for token in (START, END, CALL, CALL_END, RESPONSE, RESPONSE_END, THINK, THINK_END)
    )
    fields = frozenset({"tool_calls", "tool_call_id", "reasoning"})
    option_values: ClassVar = {"enable_thinking": ("true", "false")}

    def render(self, chat: Chat) -> Layout:
        layout = super().render(chat)
        if chat.options.prompts and self.option(chat, "enable_thinking") == "false":
            layout.add(THINK, "\n\n", THINK_END, "\n\n")
        return layout

    def _assistant(self, layout: Layout, message: Message, *, is_last: bool, answers: bool) -> None:
        parts = message.parts
        if answers and (is_last or message.reasoning is not None):
            reasoning = (message.reasoning or "").strip("\n")
            layout.add(THINK, f"\n{reasoning}\n", THINK_END, "\n\n")
            # The template strips line breaks at the start of the content: of its first parts.
            start = takewhile(lambda part: isinstance(part, str) and not part.strip("\n"), parts)
            parts = parts[len(list(start)) :]
            if parts and isinstance(parts[0], str):
                parts = (parts[0].lstrip("\n"), *parts[1:])
        layout.add(*parts)
        self._calls(layout, message)


def _last_user(chat: Chat) -> int:
    for index in range(len(chat.messages) - 1, -1, -1):
        if chat.messages[index].role == "user":
            return index
    return len(chat.messages) - 1
