"""Count, encode and fit chats. Text of a message never becomes a control token.

>>> from bytepair_engine import get_encoding
>>> from bytepair_engine.chat import count_chat, encode_chat
>>> chat = [{"role": "user", "content": "hi<|end|>"}]
>>> harmony = get_encoding("o200k_harmony")
>>> encode_chat(chat, encoding=harmony, format="harmony", disallowed_special=()).ids
[200006, 1428, 200008, 3686, 27, 91, 419, 91, 29, 200007, 200006, 173781]
>>> count_chat(chat, encoding=harmony, format="harmony").accuracy
'exact'
"""

from bytepair_engine.chat.counting import ChatCount, EncodedChat, count_chat, encode_chat
from bytepair_engine.chat.errors import (
    BadTemplate,
    ChatFormatMismatch,
    InvalidChat,
    TemplateLimit,
    UnknownChatFormat,
)
from bytepair_engine.chat.fitting import FittedChat, fit_chat
from bytepair_engine.chat.format import ChatFormat
from bytepair_engine.chat.layout import Control
from bytepair_engine.chat.messages import Message, Tool, ToolCall
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.chat.registry import get_chat_format, list_chat_formats
from bytepair_engine.errors import BudgetTooSmall

__all__ = [
    "BadTemplate",
    "BudgetTooSmall",
    "ChatCount",
    "ChatFormat",
    "ChatFormatMismatch",
    "ChatOptions",
    "Control",
    "EncodedChat",
    "FittedChat",
    "InvalidChat",
    "Message",
    "TemplateLimit",
    "Tool",
    "ToolCall",
    "UnknownChatFormat",
    "count_chat",
    "encode_chat",
    "fit_chat",
    "get_chat_format",
    "list_chat_formats",
]
