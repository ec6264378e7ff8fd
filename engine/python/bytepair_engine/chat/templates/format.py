"""A chat format defined by a Jinja2 template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from traceback import walk_tb
from types import CodeType
from typing import Any, Final, Literal

from jinja2 import TemplateError, TemplateSyntaxError, meta, nodes
from jinja2.environment import Template

from bytepair_engine.chat.errors import (
    NO_COUNTED_PART,
    BadTemplate,
    ChatFormatMismatch,
    InvalidChat,
    TemplateLimit,
)
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.json_text import NotJson, parse
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout
from bytepair_engine.chat.messages import Message
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.chat.templates.budget import Budget, limited
from bytepair_engine.chat.templates.controls import pieces
from bytepair_engine.chat.templates.environment import Environment, NotGiven
from bytepair_engine.chat.templates.traced import Traced
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import Cancelled, InvalidOption
from bytepair_engine.vocabulary.special_search import special_search

Arguments = Literal["object", "text"]

#: Maximum number of characters of a template. The longest published ones have some 20,000.
MAX_SOURCE: Final = 1 << 18

#: What looks like a control token, as in published templates.
_CONTROL: Final = re.compile(
    r"<([|｜])[^\s<>|｜]+\1>|</?s>|<(?:bos|eos|start_of_turn|end_of_turn)>"
)

#: Field of a message to its name in templates.
_FIELDS: Final = {
    "name": "name",
    "reasoning": "reasoning_content",
    "tool_call_id": "tool_call_id",
    "tool_calls": "tool_calls",
}


#: A chat that most templates render, with the control tokens of every chat.
_SHORTEST: Final = Chat((Message("user", ("",)),), options=ChatOptions(current_date="2000-01-01"))


@dataclass
class _Rendering:
    """The state of one rendering.

    Attributes:
        owners: Identity of a message or tool to its owner.
        owner: The owner of the current output.
        date: The date of the chat; "" if it has none.
    """

    owners: dict[int, int]
    date: str
    owner: int = FRAME


_RENDERING: Final[ContextVar[_Rendering]] = ContextVar("rendering")


def _entered(value: Any) -> None:
    rendering = _RENDERING.get()
    if value is None:
        rendering.owner = FRAME
    else:
        rendering.owner = rendering.owners.get(id(value), rendering.owner)


def _date() -> str:
    date = _RENDERING.get().date
    if not date:
        raise InvalidOption("current_date", "must be set: the template writes the date")
    return date


class TemplateFormat(ChatFormat):
    """A format defined by a chat template in Hugging Face's style.

    A special token becomes a control token only if the template's own text spells it. Input from
    messages and tools is always ordinary text.
    """

    joining = "runs"
    roles = ("system", "developer", "user", "assistant", "tool")

    def __init__(
        self,
        name: str,
        template: str,
        *,
        variables: Mapping[str, Any] | None = None,
        options: Mapping[str, Iterable[str]] | None = None,
        encodings: Iterable[str] = (),
        arguments: Arguments = "object",
        source: str = "",
    ) -> None:
        """Compile a template.

        Args:
            name: The format's name.
            template: The text of a `chat_template`.
            variables: Variables of the template, such as `bos_token`. They count as its own text.
                A token that is None is undefined, and one that is not given cannot be written.
            options: Variables that a request may set (`format_options`) with their values, the
                default first. "true" and "false" become booleans.
            encodings: Names of the encodings that the template is for; empty for any that has its
                control tokens.
            arguments: Type of the arguments of calls: "object" for a JSON value, or "text".
            source: Description of the origin.
        Raises:
            BadTemplate: The template is invalid, uses features that chat templates lack, or writes
                a token that is not given.
            InvalidOption: `encodings` or the values of an option are one string, or an option has
                no values.
        """
        self.name = name
        self.source = source or "a chat template"
        self.audience = "models whose chat template this is"
        self.option_values = {  # type: ignore[misc]
            key: _values(key, values) for key, values in (options or {}).items()
        }
        self._template_text = template
        given = variables or {}
        self._variables = {
            key: _constants(value)
            for key, value in given.items()
            if value is not None or not key.endswith("_token")
        }
        self._encodings = frozenset(_strings("encodings", encodings))
        self._arguments = arguments
        if len(template) > MAX_SOURCE:
            raise BadTemplate(name, None, f"more than {MAX_SOURCE} characters")
        environment = Environment(_entered, _date)
        try:
            tree = environment.parsed(template)
            names = {node.attr for node in tree.find_all(nodes.Getattr)}
            names |= {
                node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)
            }
            code = environment.compile(tree)
            assert isinstance(code, CodeType)
            self._compiled = Template.from_code(environment, code, environment.globals)
            # Last: it folds lists and dictionaries of the tree into constants without provenance.
            used = meta.find_undeclared_variables(tree)
        except TemplateSyntaxError as error:
            raise BadTemplate(name, error.lineno, error.message or "syntax error") from None
        except (TemplateError, RecursionError, SyntaxError, ValueError, TypeError) as error:
            raise BadTemplate(name, None, type(error).__name__) from None
        self._tokens = {
            str(value)
            for key, value in self._variables.items()
            if key.endswith("_token") and key in used and isinstance(value, str) and value
        }
        self._not_given = {
            key: NotGiven(key)
            for key in used - given.keys() - self.option_values.keys()
            if key.endswith("_token")
        }
        self.tools = "tools" in used
        self.dates = any(node.name == "strftime_now" for node in tree.find_all(nodes.Name))
        fields = {field for field, key in _FIELDS.items() if key in names}
        # A result has the id of its call, whether the template writes it or not.
        self.fields = frozenset(fields | {"tool_call_id"} if "tool_calls" in fields else fields)
        try:
            with suppress(TemplateLimit):
                self._rendered(_SHORTEST)
        except InvalidChat as error:
            if error.rule == "token_not_given":
                raise BadTemplate(name, None, error.advice) from None

    def identity(self) -> Iterable[str]:
        yield from ("template", self.name, self._template_text, self._arguments)
        yield json.dumps([self._variables, self.option_values], sort_keys=True)

    def check_new(self, encoding: Encoding) -> None:
        super().check_new(encoding)
        if self._encodings and encoding.name not in self._encodings:
            raise ChatFormatMismatch(self.name, encoding.name, ())
        # Text can match these added tokens, so a message could forge control tokens.
        added = () if encoding.pipeline is None else encoding.pipeline.added
        names = [token.name for token in added if not token.special and token.name.strip()]
        if found := self._tokens_in_template(names):
            raise ChatFormatMismatch(self.name, encoding.name, sorted(found))
        with suppress(InvalidChat, TemplateLimit):
            self._layout(_SHORTEST, encoding)

    def own_texts(self) -> Iterable[str]:
        return ()  # special tokens in it are control tokens

    def _check_written(self, text: str, encoding: Encoding) -> None:
        """Raise ChatFormatMismatch if the template wrote what looks like a control token that the
        encoding lacks, unless `encodings` names the encoding."""
        if encoding.name not in self._encodings:
            written = {found.group() for found in _CONTROL.finditer(text)}
            written |= {token for token in self._tokens if token in text}
            if missing := written - encoding.special_tokens.keys():
                raise ChatFormatMismatch(self.name, encoding.name, sorted(missing))

    def controls_in(self, encoding: Encoding) -> frozenset[str]:
        """Return the special tokens of an encoding that the template or its variables contain."""
        return self._tokens_in_template(encoding.special_tokens)

    def _tokens_in_template(self, tokens: Iterable[str]) -> frozenset[str]:
        source = self._template_text + json.dumps(self._variables, ensure_ascii=False)
        return frozenset(token for token in tokens if token in source)

    def layout(self, chat: Chat, encoding: Encoding) -> Layout:
        self.check_encoding(encoding)
        self.check_options(chat.options)
        self.check_messages(chat)
        return self._layout(chat, encoding)

    def _layout(self, chat: Chat, encoding: Encoding) -> Layout:
        layout = Layout()
        names = special_search(frozenset(encoding.special_tokens))
        texts: list[str] = []
        runs: list[str] = []
        for piece, owner in pieces(self._rendered(chat), names, runs):
            if owner != layout.owner or isinstance(piece, Control):
                layout.add("".join(texts))
                texts = []
            layout.owner = owner
            if isinstance(piece, Control):
                self.check_control(encoding, piece.name)  # it may be written in pieces
                layout.add(piece)
            else:
                texts.append(piece)
        layout.add("".join(texts))
        self._check_written("\n".join(runs), encoding)
        layout.join()
        return layout

    def render(self, chat: Chat) -> Layout:
        """Render a chat as text only: without the encoding, control tokens are unknown."""
        layout = Layout()
        for output, owner in self._rendered(chat):
            layout.owner = owner
            layout.add(str(output))
        return layout

    def _rendered(self, chat: Chat) -> list[tuple[str, int]]:
        """Return the output of the template: texts with their owners.

        Raises:
            InvalidChat: The template rejects the chat, or fails.
            TemplateLimit: The template exceeds a limit.
        """
        messages = [self._message(index, message) for index, message in enumerate(chat.messages)]
        tools = [dict(tool.document) for tool in chat.tools]
        owners = {id(message): index for index, message in enumerate(messages)}
        owners |= {id(tool): TOOLS for tool in tools}
        values, characters = _size([messages, tools])
        scope = {
            **self._not_given,
            **self._variables,
            **{key: self._option(chat, key) for key in self.option_values},
            "messages": messages,
            "tools": tools or None,
            "documents": None,
            "add_generation_prompt": chat.options.prompts,
        }
        token = _RENDERING.set(rendering := _Rendering(owners, chat.options.current_date))
        try:
            with limited(Budget(values, characters)):
                context = self._compiled.new_context(scope)
                return [
                    (output, rendering.owner) for output in self._compiled.root_render_func(context)
                ]
        except (Cancelled, InvalidOption, TemplateLimit):
            raise
        except RecursionError:
            raise TemplateLimit("depth") from None
        except Exception as error:
            # A template can raise any exception, and its message may quote text of the chat.
            line = f"see line {self._line(error)} of the template"
            if isinstance(error, InvalidChat):
                advice = f"{error.advice}; {line}" if error.advice else line
                raise InvalidChat(None, "messages", error.rule, advice) from None
            raise InvalidChat(None, "messages", "template_failed", line) from None
        finally:
            _RENDERING.reset(token)

    def _line(self, error: Exception) -> int:
        """Return the line of the template that raised an error."""
        last = 0
        for frame, line in walk_tb(error.__traceback__):
            if frame.f_globals is self._compiled.root_render_func.__globals__:
                last = line
        return self._compiled.get_corresponding_lineno(last)

    def _option(self, chat: Chat, key: str) -> Any:
        value = self.option(chat, key)
        return {"true": True, "false": False}.get(value, Traced.constant(value))

    def check_options(self, options: ChatOptions) -> None:
        super().check_options(options)
        if options.continue_final_message:
            raise InvalidOption("continue_final_message", "the format does not support it")

    def _message(self, index: int, message: Message) -> dict[str, Any]:
        for at, part in enumerate(message.content or ()):
            if isinstance(part, int):
                raise InvalidChat(index, f"content[{at}]", "part_not_supported", NO_COUNTED_PART)
        fields: dict[str, Any] = {
            # A constant, because templates build control tokens from roles; it is one of `roles`.
            "role": Traced.constant(message.role),
            "content": None if message.content is None else message.text,
        }
        if message.tool_calls:
            fields["tool_calls"] = [
                {
                    **({"id": call.id} if call.id else {}),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": self._argument(index, at, call.arguments),
                    },
                }
                for at, call in enumerate(message.tool_calls)
            ]
        for field in ("name", "reasoning", "tool_call_id"):
            value = getattr(message, field)
            if value is not None:
                fields[_FIELDS[field]] = value
        return fields

    def _argument(self, index: int, at: int, text: str) -> Any:
        if self._arguments == "text":
            return text
        try:
            return parse(text)
        except NotJson:
            raise InvalidChat(index, f"tool_calls[{at}].arguments", "not_json") from None


def _strings(option: str, strings: Iterable[str]) -> tuple[str, ...]:
    if isinstance(strings, str):  # its characters would be the strings
        raise InvalidOption(option, "must be a collection of strings, not one string")
    return tuple(strings)


def _values(key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return the values of an option, of which the first is the default."""
    found = _strings(f"options.{key}", values)
    if not found:
        raise InvalidOption(f"options.{key}", "must have a value, its default")
    return found


def _constants(value: Any) -> Any:
    """Mark all texts of a configured value as text of the template."""
    if isinstance(value, str):
        return Traced.constant(value)
    if isinstance(value, list):
        return [_constants(item) for item in value]
    if isinstance(value, dict):
        return {key: _constants(item) for key, item in value.items()}
    return value


def _size(value: Any) -> tuple[int, int]:
    """Return the number of values in a nested value, and of characters."""
    values = characters = 0
    open_values = [value]
    while open_values:
        item = open_values.pop()
        values += 1
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, Mapping):
            open_values += item.keys()
            open_values += item.values()
        elif isinstance(item, (list, tuple)):
            open_values += item
    return values, characters
