"""The base class of chat formats, which render messages into control tokens and text."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import ClassVar, Final, Literal
from weakref import WeakKeyDictionary, WeakSet

from bytepair_engine.chat.errors import ChatFormatMismatch, InvalidChat
from bytepair_engine.chat.layout import Control, Layout
from bytepair_engine.chat.messages import NOTHING_ELSE, Message, Structured, Tool
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption
from bytepair_engine.vocabulary.special_search import special_search

Joining = Literal["piecewise", "runs"]
Accuracy = Literal["exact", "estimate"]

#: Optional fields of a message, which a format rejects unless they are in its `fields`.
_OPTIONAL: Final = ("name", "reasoning", "tool_calls", "tool_call_id")
_HARMONY: Final = ("channel", "recipient", "content_type", "constrain")


@dataclass(frozen=True)
class Chat:
    """A parsed chat, the input of a format."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    options: ChatOptions = field(default_factory=ChatOptions)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The types of all content parts of the messages."""
        contents = [message.content for message in self.messages if message.content]
        return frozenset(map(type, chain.from_iterable(contents)))


class ChatFormat(ABC):
    """A chat format: it renders messages into control tokens and text.

    Attributes:
        name: The name, such as "harmony".
        source: The published definition: repository, file and revision.
        audience: The models that receive this rendering, or are billed by this count.
        revision: Increased with every change of the rendering.
        joining: "piecewise" if every piece of text is encoded separately; "runs" if all text
            between two control tokens is encoded as one.
        accuracy: The best accuracy of a count.
        encodes: Whether the format has ids; False if only a rule for counting is published.
        additive: Whether the number of tokens of a message is independent of the other messages.
        dates: Whether the format renders the option `current_date`.
        controls: The control tokens that every encoding must have.
        optional_controls: Control tokens that only some chats need.
        roles: The supported roles.
        fields: The supported optional fields of a message.
        tools: Whether tools are supported.
        efforts: The supported values of `reasoning_effort`.
        past_reasoning: The supported values of `past_reasoning`, apart from "default".
        option_values: The format's own options with their values, the default first.
    """

    name: str
    source: str
    audience: str
    revision: int = 1
    joining: Joining = "piecewise"
    accuracy: Accuracy = "exact"
    encodes: bool = True
    additive: bool = False
    controls: frozenset[str] = frozenset()
    optional_controls: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ("system", "user", "assistant")
    fields: frozenset[str] = frozenset()
    tools: bool = False
    dates: bool = False
    efforts: tuple[str, ...] = ()
    past_reasoning: tuple[str, ...] = ()
    option_values: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    _fingerprint: str | None = None

    def is_for(self, model: str) -> bool:
        """Whether the format's counts are known to apply to the model, or to the models of the
        encoding, of this name."""
        del model
        return True

    @abstractmethod
    def render(self, chat: Chat) -> Layout:
        """Render a chat into pieces, before they are joined.

        Raises:
            InvalidChat: The format cannot render the chat.
        """

    @property
    def fingerprint(self) -> str:
        """The hash of everything that determines the rendering: "sha256:" and 64 hexadecimal
        digits. With equal fingerprints of format and encoding, every chat has equal ids."""
        # No cached_property: on Python 3.11 it holds a lock, which a fork meanwhile leaves locked.
        if self._fingerprint is not None:
            return self._fingerprint
        digest = hashlib.sha256(b"bytepair chat format 1\n")
        for value in self.identity():
            data = value.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        self._fingerprint = f"sha256:{digest.hexdigest()}"
        return self._fingerprint

    def identity(self) -> Iterable[str]:
        """Yield the strings that the fingerprint hashes."""
        yield from (self.name, self.source, str(self.revision), self.joining)
        yield from sorted(self.controls | self.optional_controls)

    def check_encoding(self, encoding: Encoding) -> None:
        """Raise ChatFormatMismatch if the encoding does not support the format. Cached."""
        if encoding not in self._checked:
            self.check_new(encoding)
            self._checked.add(encoding)

    @cached_property
    def _checked(self) -> WeakSet[Encoding]:
        """The encodings that support the format."""
        return WeakSet()

    def check_new(self, encoding: Encoding) -> None:
        """Raise ChatFormatMismatch if the encoding lacks a control token, if a special token is in
        the format's own text, or as `check_control`."""
        missing = self.controls - encoding.special_tokens.keys()
        if missing:
            raise ChatFormatMismatch(self.name, encoding.name, sorted(missing))
        names = special_search(frozenset(encoding.special_tokens))
        if any(names.search(text, len(text)) for text in self.own_texts()):
            raise ChatFormatMismatch(self.name, encoding.name, ())
        if self.joining == "runs":
            for name in self.controls_in(encoding):
                self.check_control(encoding, name)

    def own_texts(self) -> Iterable[str]:
        """Yield the format's own text around messages. That of tools and calls is not included."""
        roles = "system", "user", "assistant", "developer"
        system, user, assistant, developer = (Message(role, ("\0",)) for role in roles)
        for messages in (system,), (system, user), (user, assistant), (developer, user):
            with suppress(InvalidChat):
                self.check_messages(chat := Chat(messages))
                layout = self.render(chat)
                if self.joining == "runs":
                    layout.join()
                for piece in layout.pieces:
                    if isinstance(piece, str):
                        yield from piece.split("\0")

    def check_control(self, encoding: Encoding, name: str) -> None:
        """Raise ChatFormatMismatch if a control token changes the ids of adjacent text: then runs
        cannot be encoded separately. Cached."""
        independent = self._independent.setdefault(encoding, set())
        if name not in independent:
            if not _is_independent(encoding, name):
                raise ChatFormatMismatch(self.name, encoding.name, ())
            independent.add(name)

    @cached_property
    def _independent(self) -> WeakKeyDictionary[Encoding, set[str]]:
        """The control tokens of each encoding that change no ids of adjacent text."""
        return WeakKeyDictionary()

    def controls_in(self, encoding: Encoding) -> frozenset[str]:
        """Return the control tokens that the format may write with an encoding."""
        del encoding
        return self.controls | self.optional_controls

    def layout(self, chat: Chat, encoding: Encoding) -> Layout:
        """Check and render a chat into the pieces to encode.

        Raises:
            InvalidChat: The format cannot render the chat.
            InvalidOption: The format does not support an option or its value.
            ChatFormatMismatch: The encoding lacks control tokens.
        """
        self.check_encoding(encoding)
        self.check_options(chat.options)
        self.check_messages(chat)
        layout = self.render(chat)
        if self.optional_controls:
            used = {piece.name for piece in layout.pieces if isinstance(piece, Control)}
            if missing := used - encoding.special_tokens.keys():
                raise ChatFormatMismatch(self.name, encoding.name, sorted(missing))
        if self.joining == "runs":
            layout.join()
        return layout

    def check_options(self, options: ChatOptions) -> None:
        """Raise InvalidOption if the format does not support an option or its value in any chat."""
        if options.reasoning_effort and options.reasoning_effort not in self.efforts:
            raise InvalidOption("reasoning_effort", _one_of(self.efforts))
        if options.past_reasoning not in ("default", *self.past_reasoning):
            raise InvalidOption("past_reasoning", _one_of(self.past_reasoning))
        if options.current_date and not self.dates:
            raise InvalidOption("current_date", f"the format {self.name!r} has no date")
        for key, value in options.format_options.items():
            if key not in self.option_values:
                raise InvalidOption("format_options", _one_of(sorted(self.option_values)))
            if value not in self.option_values[key]:
                raise InvalidOption(f"format_options.{key}", _one_of(self.option_values[key]))

    def accuracy_of(self, chat: Chat) -> Accuracy:
        """Return the accuracy of a chat's count: "estimate" if the caller counted parts of it."""
        return "estimate" if int in chat.kinds else self.accuracy

    def option(self, chat: Chat, key: str) -> str:
        """Return the value of one of the format's own options."""
        values = self.option_values[key]
        given = chat.options.format_options.get(key, values[0])
        return values[values.index(given)]  # `given` may be of a subclass of `str`

    def check_messages(self, chat: Chat) -> None:
        """Raise InvalidChat if the format does not support a role, a field or tools; InvalidOption
        if there is no message to continue."""
        if chat.options.continue_final_message and (
            not chat.messages or chat.messages[-1].role != "assistant"
        ):
            raise InvalidOption("continue_final_message", "the last message is not the assistant's")
        if chat.tools and not self.tools:
            raise InvalidChat(None, "tools", "field_not_supported")
        has_structured = Structured in chat.kinds and "structured" not in self.fields
        others = [message[2:] for message in chat.messages]
        if (
            others.count(NOTHING_ELSE) == len(others)
            and {message.role for message in chat.messages}.issubset(self.roles)
            and not has_structured
        ):
            return  # fast path of most chats
        rejected = [name for name in (*_OPTIONAL, *_HARMONY) if name not in self.fields]
        for index, message in enumerate(chat.messages):
            if message.role not in self.roles:
                known = f"{self.name} has the roles {', '.join(self.roles)}"
                raise InvalidChat(index, "role", "role_unknown", known)
            for name in rejected:
                if getattr(message, name) in (None, ()):
                    continue
                # The name of a tool result is also in its call, so a format need not render it.
                if name != "name" or message.role != "tool":
                    raise InvalidChat(index, name, "field_not_supported")
            for at, part in enumerate(message.content or ()) if has_structured else ():
                if type(part) is Structured:
                    raise InvalidChat(index, f"content[{at}]", "part_not_supported")


def _is_independent(encoding: Encoding, name: str) -> bool:
    """Whether text next to a control token has the same ids as alone. It does not if the token
    strips white space, or if the encoding adds a prefix at the start of a text."""
    token = encoding.special_tokens.get(name)
    texts = ("a", " ") if token is not None else ()
    for text in texts:
        ids = encoding.encode_ordinary(text)
        # Another special token may be part of the name.
        found = encoding.encode(text + name + text, allowed_special={name}, disallowed_special=())
        if found != [*ids, token, *ids]:
            return False
    return True


def _one_of(values: Iterable[str]) -> str:
    known = ", ".join(values)
    return f"must be one of {known}" if known else "the format does not support it"
