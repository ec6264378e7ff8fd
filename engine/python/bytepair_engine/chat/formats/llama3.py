"""Llama 3, by Meta's reference implementation."""

from __future__ import annotations

import json
from typing import Final

from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.json_text import parse
from bytepair_engine.chat.layout import FRAME, Control, Layout

BEGIN: Final = Control("<|begin_of_text|>")
HEADER: Final = Control("<|start_header_id|>")
HEADER_END: Final = Control("<|end_header_id|>")
END_OF_TURN: Final = Control("<|eot_id|>")

#: Tools whose calls the reference renders in other ways.
_BUILTIN: Final = ("brave_search", "wolfram_alpha", "photogen", "code_interpreter")


class Llama3(ChatFormat):
    """A header with the role, the content, and the end of the turn. Calls are JSON. Unlike in the
    templates on Hugging Face, content is not trimmed."""

    name = "llama3"
    source = "meta-llama/llama-models models/llama3/chat_format.py @a9c89c4"
    audience = "Llama 3, 3.1, 3.2 and 3.3 Instruct models"
    controls = frozenset({BEGIN.name, HEADER.name, HEADER_END.name, END_OF_TURN.name})
    additive = True
    roles = ("system", "user", "assistant", "tool", "ipython")
    fields = frozenset({"tool_calls", "tool_call_id"})

    def render(self, chat: Chat) -> Layout:
        layout = Layout()
        layout.add(BEGIN)
        last = len(chat.messages) - 1
        for index, message in enumerate(chat.messages):
            layout.owner = index
            role = "ipython" if message.role == "tool" else message.role
            layout.add(HEADER, role, HEADER_END, "\n\n", *message.parts)
            if message.tool_calls and role != "assistant":
                raise InvalidChat(index, "tool_calls", "only_assistants_call")
            for at, call in enumerate(message.tool_calls):
                if call.name in _BUILTIN:
                    raise InvalidChat(index, f"tool_calls[{at}].name", "built_in_tool")
                document = {
                    "type": "function",
                    "name": call.name,
                    "parameters": parse(call.arguments),
                }
                # The reference escapes characters outside ASCII.
                layout.add(json.dumps(document))
            if index < last or not chat.options.continue_final_message:
                layout.add(END_OF_TURN)
        if chat.options.prompts:
            layout.owner = FRAME
            layout.add(HEADER, "assistant", HEADER_END, "\n\n")
        return layout
