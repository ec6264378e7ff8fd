"""The exceptions of chats, with their facts.

    BytepairError
    ├── UnknownChatFormat   (LookupError)  no such format
    ├── ChatFormatMismatch  (ValueError)   the encoding lacks control tokens of the format
    ├── InvalidChat         (ValueError)   the format cannot say this chat
    ├── TemplateLimit       (ValueError)   a template does more than it may
    └── BadTemplate         (ValueError)   a template cannot be loaded

No message holds text of a chat.
"""

from __future__ import annotations

from collections.abc import Sequence

from bytepair_engine.errors import BytepairError


class UnknownChatFormat(BytepairError, LookupError):
    """No chat format has this name.

    Attributes:
        name: What was requested.
        known: The names that exist, sorted.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = tuple(known)

    def __str__(self) -> str:
        return f"unknown chat format {self.name!r}; known: {', '.join(self.known)}"


class ChatFormatMismatch(BytepairError, ValueError):
    """The encoding does not have what the format needs.

    Attributes:
        format: The format's name.
        encoding: The encoding's name.
        missing: Control tokens that the encoding does not have as special tokens, sorted; empty
            where the format is known only for other encodings.
    """

    def __init__(self, format_name: str, encoding: str, missing: Sequence[str]) -> None:
        super().__init__(format_name, encoding, missing)
        self.format = format_name
        self.encoding = encoding
        self.missing = tuple(missing)

    def __str__(self) -> str:
        if not self.missing:
            return f"chat format {self.format!r} is not defined for the encoding {self.encoding!r}"
        return (
            f"chat format {self.format!r} needs special tokens that the encoding "
            f"{self.encoding!r} does not have: {', '.join(self.missing)}; if its file has them, "
            "name them in also_special"
        )


class InvalidChat(BytepairError, ValueError):
    """The format cannot say this chat.

    Attributes:
        index: The message at fault, or the tool where `field` begins with "tools"; None where it
            is the whole chat.
        field: The field at fault, such as "role" or "tool_calls".
        rule: The rule that it breaks, in lower snake case, such as "role_unknown".
    """

    def __init__(self, index: int | None, field: str, rule: str) -> None:
        super().__init__(index, field, rule)
        self.index = index
        self.field = field
        self.rule = rule

    def __str__(self) -> str:
        if self.index is None:
            return f"the chat breaks the rule {self.rule} in {self.field}"
        kind = "tool" if self.field.startswith("tools") else "message"
        return f"{kind} {self.index} breaks the rule {self.rule} in {self.field}"


class TemplateLimit(BytepairError, ValueError):
    """A chat template does more than it may for a chat of this size.

    Attributes:
        limit: What it used up: "steps", "depth", "width" or "integer".
    """

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"the chat template uses more {self.limit} than it may for a chat of this size"


class BadTemplate(BytepairError, ValueError):
    """A chat template cannot be loaded.

    Attributes:
        name: The format's name.
        line: The template's line at fault; None where it is all of it, or its file.
        fault: What is wrong.
    """

    def __init__(self, name: str, line: int | None, fault: str) -> None:
        super().__init__(name, line, fault)
        self.name = name
        self.line = line
        self.fault = fault

    def __str__(self) -> str:
        place = "" if self.line is None else f", line {self.line}"
        return f"chat format {self.name!r}{place}: {self.fault}"
