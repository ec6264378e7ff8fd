"""DeepSeek-V3."""

from __future__ import annotations

from typing import Final

from bytepair_engine.chat.errors import NO_COUNTED_PART, InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, Control, Layout
from bytepair_engine.chat.messages import Message

BOS: Final = Control("<｜begin▁of▁sentence｜>")
EOS: Final = Control("<｜end▁of▁sentence｜>")
USER: Final = Control("<｜User｜>")
ASSISTANT: Final = Control("<｜Assistant｜>")
CALLS: Final = Control("<｜tool▁calls▁begin｜>")
CALLS_END: Final = Control("<｜tool▁calls▁end｜>")
CALL: Final = Control("<｜tool▁call▁begin｜>")
CALL_END: Final = Control("<｜tool▁call▁end｜>")
SEPARATOR: Final = Control("<｜tool▁sep｜>")
OUTPUTS: Final = Control("<｜tool▁outputs▁begin｜>")
OUTPUTS_END: Final = Control("<｜tool▁outputs▁end｜>")
OUTPUT: Final = Control("<｜tool▁output▁begin｜>")
OUTPUT_END: Final = Control("<｜tool▁output▁end｜>")


class DeepSeekV3(ChatFormat):
    """System texts first, then user and assistant messages.

    Calls reproduce the faults of the published template: only the first call of the chat opens
    the list of calls, and each later call closes it.
    """

    name = "deepseek-v3"
    source = "chat_template of deepseek-ai/DeepSeek-V3 tokenizer_config.json"
    audience = "DeepSeek-V3 models"
    joining = "runs"
    controls = frozenset(
        token.name
        for token in (BOS, EOS, USER, ASSISTANT, CALLS, CALLS_END, CALL, CALL_END, SEPARATOR)
    ) | {OUTPUTS.name, OUTPUTS_END.name, OUTPUT.name, OUTPUT_END.name}
    roles = ("system", "user", "assistant", "tool")
    fields = frozenset({"tool_calls", "tool_call_id"})

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        layout.add(BOS)
        separator = ""
        for index, message in enumerate(chat.messages):
            if message.role == "system":
                layout.owner = index
                _check_text(index, message)
                layout.add(separator, message.text)
                separator = "\n\n"
        is_tool, has_called, has_results = False, False, False
        last = len(chat.messages) - 1
        for index, message in enumerate(chat.messages):
            layout.owner = index
            if message.tool_calls and (message.role != "assistant" or message.content is not None):
                raise InvalidChat(index, "tool_calls", "content_and_tool_calls")
            if message.role == "user":
                is_tool = False
                layout.add(USER, *message.parts)
            elif message.role == "assistant" and message.content is None:
                is_tool = False
                for call in message.tool_calls:
                    layout.add(*(("\n", CALL) if has_called else (ASSISTANT, CALLS, CALL)))
                    body = f"{call.name}\n```json\n{call.arguments}\n```"
                    layout.add("function", SEPARATOR, body, CALL_END)
                    if has_called:
                        layout.add(CALLS_END, EOS)
                    has_called = True
            elif message.role == "assistant":
                layout.add(OUTPUTS_END if is_tool else ASSISTANT, *message.parts)
                is_tool = False
                if index < last or not chat.options.continue_final_message:
                    layout.add(EOS)
            elif message.role == "tool":
                is_tool = True
                layout.add(*(("\n", OUTPUT) if has_results else (OUTPUTS, OUTPUT)))
                has_results = True
                layout.add(*message.parts, OUTPUT_END)
        layout.owner = FRAME
        if is_tool:
            layout.add(OUTPUTS_END)
        elif chat.options.prompts:
            layout.add(ASSISTANT)
        return layout


def _check_text(index: int, message: Message) -> None:
    for at, part in enumerate(message.content or ()):
        if isinstance(part, int):
            raise InvalidChat(index, f"content[{at}]", "part_not_supported", NO_COUNTED_PART)
