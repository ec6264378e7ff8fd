"""The chat formats by name."""

from __future__ import annotations

from typing import Final

from bytepair_engine.chat.errors import UnknownChatFormat
from bytepair_engine.chat.format import ChatFormat
from bytepair_engine.chat.formats.chatml import ChatMl, Qwen3, Qwen25
from bytepair_engine.chat.formats.deepseek import DeepSeekV3
from bytepair_engine.chat.formats.gemma import Gemma
from bytepair_engine.chat.formats.harmony import Harmony
from bytepair_engine.chat.formats.llama3 import Llama3
from bytepair_engine.chat.formats.mistral import (
    MistralV1,
    MistralV2,
    MistralV3,
    MistralV7,
    MistralV11,
    MistralV13,
)
from bytepair_engine.chat.formats.openai_chat import OpenAiChat
from bytepair_engine.errors import check_type

_FORMATS: Final[dict[str, ChatFormat]] = {
    chat_format.name: chat_format
    for chat_format in (
        Harmony(),
        OpenAiChat(),
        ChatMl(),
        Qwen25(),
        Qwen3(),
        Llama3(),
        Gemma(),
        DeepSeekV3(),
        MistralV1(),
        MistralV2(),
        MistralV3(),
        MistralV7(),
        MistralV11(),
        MistralV13(),
    )
}


def get_chat_format(name: str) -> ChatFormat:
    """Return a built-in chat format.

    Raises:
        UnknownChatFormat: The name is unknown. There is no fallback.
        TypeError: The name is not a string.
    """
    check_type("name", name, str, "str")
    try:
        return _FORMATS[name]
    except KeyError:
        raise UnknownChatFormat(name, list_chat_formats()) from None


def list_chat_formats() -> list[str]:
    """Return the names of the built-in formats, sorted."""
    return sorted(_FORMATS)
