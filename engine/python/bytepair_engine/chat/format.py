"""A chat format: a rule that turns messages into control tokens and text."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import ClassVar, Final, Literal
from weakref import WeakSet

from bytepair_engine.chat.errors import ChatFormatMismatch, InvalidChat
from bytepair_engine.chat.layout import Control, Layout
from bytepair_engine.chat.messages import NOTHING_ELSE, Message, Structured, Tool
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption

Joining = Literal["piecewise", "runs"]
Accuracy = Literal["exact", "estimate"]

#: Fields of a message that a format may refuse, by its capability.
_OPTIONAL: Final = ("name", "reasoning", "tool_calls", "tool_call_id")
_HARMONY: Final = ("channel", "recipient", "content_type", "constrain")


@dataclass(frozen=True)
class Chat:
    """What a format renders."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    options: ChatOptions = field(default_factory=ChatOptions)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The types of all parts of its messages."""
        contents = [message.content for message in self.messages if message.content]
        return frozenset(map(type, chain.from_iterable(contents)))


class ChatFormat(ABC):
    """A rule that turns messages into control tokens and text.

    Attributes:
        name: Such as "harmony".
        source: What it is a rendering of: a repository, a file, a revision.
        audience: For which models a count by it is what they are given, or are billed for.
        revision: Raised with every change of what it renders.
        joining: "piecewise": every piece of text is encoded by itself. "runs": what stands
            between two control tokens is one text.
        accuracy: The best that it can give.
        encodes: Whether it gives ids; False where only a count is published.
        additive: Whether a message has as many tokens in every chat, as its neighbours may be.
        strict_turns: Whether users and assistants must alternate.
        dates: Whether it writes the option `current_date`.
        controls: The control tokens that an encoding must have for it.
        optional_controls: Those that only some chats need.
        roles: Which roles it has.
        fields: Which optional fields of a message it has.
        tools: Whether it can say which tools there are.
        efforts: Values of `reasoning_effort`.
        past_reasoning: Values of that option, beside "default".
        option_values: Its own options and their values, the default first.
    """

    name: str
    source: str
    audience: str
    revision: int = 1
    joining: Joining = "piecewise"
    accuracy: Accuracy = "exact"
    encodes: bool = True
    additive: bool = False
    strict_turns: bool = False
    controls: frozenset[str] = frozenset()
    optional_controls: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ("system", "user", "assistant")
    fields: frozenset[str] = frozenset()
    tools: bool = False
    dates: bool = False
    efforts: tuple[str, ...] = ()
    past_reasoning: tuple[str, ...] = ()
    option_values: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def render(self, chat: Chat) -> Layout:
        """The chat in pieces, which are not yet joined.

        Raises:
            InvalidChat: The format cannot say it.
        """

    @cached_property
    def fingerprint(self) -> str:
        """ "sha256:" and 64 hexadecimal digits over what decides the rendering: equal fingerprints
        mean equal ids for every chat, in encodings of equal fingerprints."""
        digest = hashlib.sha256(b"bytepair chat format 1\n")
        for value in self.identity():
            data = value.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        return f"sha256:{digest.hexdigest()}"

    def identity(self) -> Iterable[str]:
        """What the fingerprint is over."""
        yield from (self.name, self.source, str(self.revision), self.joining)
        yield from sorted(self.controls | self.optional_controls)

    def check_encoding(self, encoding: Encoding) -> None:
        """Raise ChatFormatMismatch for an encoding that does not have what the format needs."""
        if encoding not in self._checked:
            self.check_new(encoding)
            self._checked.add(encoding)

    @cached_property
    def _checked(self) -> WeakSet[Encoding]:
        """The encodings that have it."""
        return WeakSet()

    def check_new(self, encoding: Encoding) -> None:
        """Raise ChatFormatMismatch for an encoding that lacks a control token; or in which one
        changes the text beside it, so that runs are not what a rendered string gives."""
        missing = self.controls - encoding.special_tokens.keys()
        if missing:
            raise ChatFormatMismatch(self.name, encoding.name, sorted(missing))
        if self.joining == "runs" and not all(
            _stands_alone(encoding, name) for name in self.controls_in(encoding)
        ):
            raise ChatFormatMismatch(self.name, encoding.name, ())

    def controls_in(self, encoding: Encoding) -> frozenset[str]:
        """The control tokens that it may write in an encoding."""
        del encoding
        return self.controls | self.optional_controls

    def layout(self, chat: Chat, encoding: Encoding) -> Layout:
        """The chat in the pieces that are encoded.

        Raises:
            InvalidChat: The format cannot say it.
            InvalidOption: The format does not have an option, or not this value.
            ChatFormatMismatch: The encoding lacks control tokens.
        """
        self.check_encoding(encoding)
        self.check_options(chat)
        self.check_messages(chat)
        layout = self.render(chat)
        if self.optional_controls:
            used = {piece.name for piece in layout.pieces if isinstance(piece, Control)}
            if missing := used - encoding.special_tokens.keys():
                raise ChatFormatMismatch(self.name, encoding.name, sorted(missing))
        if self.joining == "runs":
            layout.join()
        return layout

    def check_options(self, chat: Chat) -> None:
        """Raise InvalidOption for what the format does not have."""
        options = chat.options
        if options.reasoning_effort and options.reasoning_effort not in self.efforts:
            raise InvalidOption("reasoning_effort", _one_of(self.efforts))
        if options.past_reasoning not in ("default", *self.past_reasoning):
            raise InvalidOption("past_reasoning", _one_of(("default", *self.past_reasoning)))
        if options.current_date and not self.dates:
            raise InvalidOption("current_date", f"the format {self.name!r} writes no date")
        for key, value in options.format_options.items():
            if key not in self.option_values:
                raise InvalidOption("format_options", _one_of(sorted(self.option_values)))
            if value not in self.option_values[key]:
                raise InvalidOption(f"format_options.{key}", _one_of(self.option_values[key]))
        if options.continue_final_message and (
            not chat.messages or chat.messages[-1].role != "assistant"
        ):
            raise InvalidOption("continue_final_message", "the last message is not the assistant's")

    def accuracy_of(self, chat: Chat) -> Accuracy:
        """How sure the count of this chat is: no surer than what the caller has counted."""
        return "estimate" if int in chat.kinds else self.accuracy

    def option(self, chat: Chat, key: str) -> str:
        """The value of one of the format's own options."""
        return chat.options.format_options.get(key, self.option_values[key][0])

    def check_messages(self, chat: Chat) -> None:
        """Raise InvalidChat for roles, fields and tools that the format does not have."""
        if chat.tools and not self.tools:
            raise InvalidChat(None, "tools", "field_not_supported")
        has_structured = Structured in chat.kinds and "structured" not in self.fields
        others = [message[2:] for message in chat.messages]
        if (
            others.count(NOTHING_ELSE) == len(others)
            and {message.role for message in chat.messages}.issubset(self.roles)
            and not has_structured
        ):
            return  # as most are
        refused = [name for name in (*_OPTIONAL, *_HARMONY) if name not in self.fields]
        for index, message in enumerate(chat.messages):
            if message.role not in self.roles:
                raise InvalidChat(index, "role", "role_unknown")
            for name in refused:
                if getattr(message, name) in (None, ()):
                    continue
                # A result's call says its name too, so that no format needs to write it.
                if name != "name" or message.role != "tool":
                    raise InvalidChat(index, name, "field_not_supported")
            if has_structured and any(type(part) is Structured for part in message.content or ()):
                raise InvalidChat(index, "content", "part_not_supported")


def _stands_alone(encoding: Encoding, name: str) -> bool:
    """Whether texts beside a control token have the ids that they have alone. White space may
    belong to the token, and the start of a text may have a mark that no other place has."""
    token = encoding.special_tokens.get(name)
    texts = ("a", " ") if token is not None else ()
    for text in texts:
        ids = encoding.encode_ordinary(text)
        if encoding.encode(text + name + text, allowed_special={name}) != [*ids, token, *ids]:
            return False
    return True


def _one_of(values: Iterable[str]) -> str:
    known = ", ".join(values)
    return f"must be one of {known}" if known else "the format does not have it"
