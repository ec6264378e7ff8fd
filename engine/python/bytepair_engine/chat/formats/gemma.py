"""Gemma 2 and 3."""

from __future__ import annotations

from typing import Final

from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, Control, Layout

BOS: Final = Control("<bos>")
START: Final = Control("<start_of_turn>")
END: Final = Control("<end_of_turn>")


class Gemma(ChatFormat):
    """Turns of user and model with trimmed content. The system text is part of the first user
    message."""

    name = "gemma"
    source = "chat_template of google/gemma-3-4b-it tokenizer_config.json"
    audience = "Gemma 3 models, and Gemma 2 without a system message"
    joining = "runs"
    controls = frozenset({BOS.name, START.name, END.name})

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        layout.add(BOS)
        has_system = bool(chat.messages) and chat.messages[0].role == "system"
        for index, message in enumerate(chat.messages):
            turn = index - has_system
            if turn < 0:
                continue
            layout.owner = index
            if message.role != ("assistant" if turn % 2 else "user"):
                raise InvalidChat(index, "role", "roles_must_alternate")
            layout.add(START, "model\n" if turn % 2 else "user\n")
            if turn == 0 and has_system:
                layout.owner = 0
                layout.add(*chat.messages[0].parts, "\n\n")
                layout.owner = index
            for part in message.parts:
                layout.add(part.strip() if isinstance(part, str) else part)
            if index < len(chat.messages) - 1 or not chat.options.continue_final_message:
                layout.add(END, "\n")
        if len(chat.messages) == has_system == 1:
            raise InvalidChat(0, "role", "system_without_user")
        if chat.options.prompts:
            layout.owner = FRAME
            layout.add(START, "model\n")
        return layout
