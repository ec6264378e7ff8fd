"""The exceptions of chats.

    BytepairError
    ├── UnknownChatFormat   (LookupError)  no such format
    ├── ChatFormatMismatch  (ValueError)   the encoding lacks control tokens of the format
    ├── InvalidChat         (ValueError)   the format cannot render this chat
    ├── TemplateLimit       (ValueError)   a template exceeds a limit
    └── BadTemplate         (ValueError)   a template cannot be loaded

No message quotes text of a chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bytepair_engine.chat.json_text import MAX_DEPTH
from bytepair_engine.errors import BytepairError, in_chat, shown_names
from bytepair_engine.vocabulary.names import nearest


class UnknownChatFormat(BytepairError, LookupError):
    """No chat format has this name.

    Attributes:
        name: The requested name.
        known: The known names, sorted.
        nearest: At most three known names that are similar, the most similar first.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = tuple(known)
        self.nearest = tuple(nearest(name, known))

    def __str__(self) -> str:
        return f"unknown chat format {self.name!r}; {shown_names(self.known, self.nearest)}"


class ChatFormatMismatch(BytepairError, ValueError):
    """The encoding does not support the format.

    Attributes:
        format: The format's name.
        encoding: The encoding's name.
        missing: Control tokens that are not special tokens of the encoding, sorted; empty if the
            format is not defined for the encoding, or its own text has one of the encoding's
            special tokens.
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
            "add them to also_special"
        )


#: Maximum number of `counted_tokens` of a part, so that sums are exact in JSON and protobuf.
MAX_COUNTED: Final = 1 << 40

#: What to do about a violated rule or what it means, where the rule does not say it.
_ADVICE: Final = {
    "built_in_tool": "the model writes calls of its built-in tools in another way",
    "content_and_tool_calls": "an assistant message has either; other messages have no calls",
    "counted_tokens_too_large": f"at most {MAX_COUNTED}",
    "field_not_supported": "the format does not render it: leave it out",
    "functions_given_twice": "give them as tools, or in developer_content",
    "not_hosted": "hosted models cannot continue a message",
    "not_json": f"it is not JSON, or is nested deeper than {MAX_DEPTH} levels",
    "part_empty": "it has none of text, counted_tokens and json",
    "part_in_wrong_role": "system_content is for the role system, developer_content for developer",
    "part_not_supported": "count it yourself, and give its number of tokens as counted_tokens",
    "reasoning_given_twice": "reasoning and reasoning_content name the same text, and differ here",
    "results_not_in_the_order_of_calls": "sort them, with the id of its call in each",
    "roles_must_alternate": "after system messages, user and assistant take turns",
    "several_results": "one result follows a message with calls",
    "system_not_at_start": "move it before all other messages",
    "system_without_user": "add a user message, which it is rendered in",
    "tool_result_without_call": "no call before it has this id; give the tool's name",
    "tool_without_name": "give the tool's name, or the tool_call_id of a call before it",
    "tool_without_parameters": 'give some, such as {"type": "object", "properties": {}}',
    "tools_without_user": "add a user message, which they are rendered in",
    "use_constrain": "give what follows <|constrain|> in the field constrain",
}


#: The advice about a counted part where a format needs the text.
NO_COUNTED_PART: Final = (
    "this format cannot place counted tokens; leave the part out and add its number yourself"
)


class InvalidChat(BytepairError, ValueError):
    """The format cannot render this chat.

    Attributes:
        index: Index of the invalid message, or of the tool if `field` begins with "tools"; None
            if the error concerns the whole chat.
        field: The path of the invalid field, such as "role", "content[2]" or
            "tool_calls[1].arguments".
        rule: The violated rule, in lower snake case, such as "role_unknown".
        advice: What to do about it or what it means; "" if the rule says it.
    """

    def __init__(self, index: int | None, field: str, rule: str, advice: str = "") -> None:
        super().__init__(index, field, rule, advice)
        self.index = index
        self.field = field
        self.rule = rule
        self.advice = advice or _ADVICE.get(rule, "")

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{in_chat(self.index, self.field)}: {self.rule}{advice}"


class TemplateLimit(BytepairError, ValueError):
    """A chat template exceeds a limit for a chat of this size.

    Attributes:
        limit: The exceeded limit: "steps", "depth", "width" or "integer".
    """

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"the chat template exceeds the limit of {self.limit} for a chat of this size"


class BadTemplate(BytepairError, ValueError):
    """A chat template cannot be loaded.

    Attributes:
        name: The format's name.
        line: The invalid line of the template; None if the error concerns all of it, or its file.
        fault: The problem.
    """

    def __init__(self, name: str, line: int | None, fault: str) -> None:
        super().__init__(name, line, fault)
        self.name = name
        self.line = line
        self.fault = fault

    def __str__(self) -> str:
        position = "" if self.line is None else f", line {self.line}"
        return f"chat format {self.name!r}{position}: {self.fault}"
