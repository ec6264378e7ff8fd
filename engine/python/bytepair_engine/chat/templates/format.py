"""A chat format that an operator gives as a template."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, Final, Literal

from jinja2 import TemplateError, TemplateSyntaxError, meta, nodes
from jinja2.environment import Template

from bytepair_engine.chat.errors import BadTemplate, ChatFormatMismatch, InvalidChat, TemplateLimit
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.json_text import NotJson, parse
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout
from bytepair_engine.chat.messages import Message
from bytepair_engine.chat.templates.budget import Budget, limited
from bytepair_engine.chat.templates.environment import Environment
from bytepair_engine.chat.templates.traced import Traced, ranges_of
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption

Arguments = Literal["object", "text"]

#: Characters of a template. The longest published ones have some 20,000.
MAX_SOURCE: Final = 1 << 18

#: A message's fields, and what templates call them.
_FIELDS: Final = {
    "name": "name",
    "reasoning": "reasoning_content",
    "tool_call_id": "tool_call_id",
    "tool_calls": "tool_calls",
}


@dataclass
class _Rendering:
    """What is known while one chat is rendered.

    Attributes:
        owners: By the identity of a message or a tool, what it counts for.
        owner: What the present output counts for.
        date: The chat's date; "" for none.
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
        raise InvalidOption("current_date", "the template writes the date, so it must be set")
    return date


class TemplateFormat(ChatFormat):
    """A format whose rule is a chat template of Hugging Face's kind.

    Control tokens are those special tokens of the encoding that text of the template spells. What
    comes from messages and tools is text, whatever it spells and wherever it stands.
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
            variables: Values that it reads, such as `bos_token`. They are the template's own text.
            options: Variables that a request may set (`format_options`), and their values, the
                default first. "true" and "false" reach the template as such.
            encodings: Which encodings it is for; any by default.
            arguments: How a call's arguments reach it: as a JSON value, or as text.
            source: Where it comes from, for people.
        Raises:
            BadTemplate: It is no template, or has what chat templates do not have.
        """
        self.name = name
        self.source = source or "a chat template"
        self.audience = "models whose chat template this is"
        self.option_values = {key: tuple(values) for key, values in (options or {}).items()}  # type: ignore[misc]
        self._template_text = template
        self._variables = {key: _constants(value) for key, value in (variables or {}).items()}
        self._encodings = frozenset(encodings)
        self._arguments = arguments
        if len(template) > MAX_SOURCE:
            raise BadTemplate(name, None, f"more than {MAX_SOURCE} characters")
        environment = Environment(_entered, _date)
        try:
            tree = environment.parsed(template)
            used = meta.find_undeclared_variables(tree)
            names = {node.attr for node in tree.find_all(nodes.Getattr)}
            names |= {
                node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)
            }
            code = environment.compile(tree)
            assert isinstance(code, CodeType)
            self._compiled = Template.from_code(environment, code, environment.globals)
        except TemplateSyntaxError as error:
            raise BadTemplate(name, error.lineno, error.message or "syntax error") from None
        except (TemplateError, RecursionError, SyntaxError, ValueError, TypeError) as error:
            raise BadTemplate(name, None, type(error).__name__) from None
        self.tools = "tools" in used
        self.dates = any(node.name == "strftime_now" for node in tree.find_all(nodes.Name))
        fields = {field for field, said in _FIELDS.items() if said in names}
        # A result says which call it answers, whether the template writes it or not.
        self.fields = frozenset(fields | {"tool_call_id"} if "tool_calls" in fields else fields)

    def identity(self) -> Iterable[str]:
        yield from ("template", self.name, self._template_text, self._arguments)
        yield json.dumps([self._variables, self.option_values], sort_keys=True)

    def check_new(self, encoding: Encoding) -> None:
        super().check_new(encoding)
        if self._encodings and encoding.name not in self._encodings:
            raise ChatFormatMismatch(self.name, encoding.name, ())
        # Tokens that any text becomes: a message would write what the template controls by.
        added = () if encoding.pipeline is None else encoding.pipeline.added
        names = [token.name for token in added if not token.special and token.name.strip()]
        if found := self._spelled(names):
            raise ChatFormatMismatch(self.name, encoding.name, sorted(found))

    def controls_in(self, encoding: Encoding) -> frozenset[str]:
        """The special tokens of an encoding that the template or its variables spell."""
        return self._spelled(encoding.special_tokens)

    def _spelled(self, tokens: Iterable[str]) -> frozenset[str]:
        spelled = self._template_text + json.dumps(self._variables, ensure_ascii=False)
        return frozenset(token for token in tokens if token in spelled)

    def layout(self, chat: Chat, encoding: Encoding) -> Layout:
        self.check_encoding(encoding)
        self.check_options(chat)
        self.check_messages(chat)
        layout = Layout()
        finder = _finder(tuple(encoding.special_tokens))
        texts: list[str] = []
        for piece, owner in _pieces(self._rendered(chat), finder):
            if texts and (owner != layout.owner or isinstance(piece, Control)):
                layout.add("".join(texts))
                texts = []
            layout.owner = owner
            if isinstance(piece, Control):
                layout.add(piece)
            else:
                texts.append(piece)
        layout.add("".join(texts))
        layout.join()
        return layout

    def render(self, chat: Chat) -> Layout:
        """The chat as one text, without control tokens: which they are the encoding says."""
        layout = Layout()
        for made, owner in self._rendered(chat):
            layout.owner = owner
            layout.add(str(made))
        return layout

    def render_text(self, chat: Chat) -> str:
        """The text that the template writes."""
        return "".join([made for made, _ in self._rendered(chat)])

    def _rendered(self, chat: Chat) -> list[tuple[str, int]]:
        """What the template writes, each text with what it belongs to.

        Raises:
            InvalidChat: The template refuses the chat, or fails.
            TemplateLimit: It does too much.
        """
        messages = [self._message(index, message) for index, message in enumerate(chat.messages)]
        tools = [dict(tool.document) for tool in chat.tools]
        owners = {id(message): index for index, message in enumerate(messages)}
        owners |= {id(tool): TOOLS for tool in tools}
        values, characters = _size([messages, tools])
        given = {
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
                context = self._compiled.new_context(given)
                return [
                    (made, rendering.owner) for made in self._compiled.root_render_func(context)
                ]
        except (InvalidChat, InvalidOption, TemplateLimit):
            raise
        except RecursionError:
            raise TemplateLimit("depth") from None
        except Exception:
            # Of any kind, as with any Python; what it says may hold text of the chat.
            raise InvalidChat(None, "messages", "template_failed") from None
        finally:
            _RENDERING.reset(token)

    def _option(self, chat: Chat, key: str) -> Any:
        value = self.option(chat, key)
        return {"true": True, "false": False}.get(value, Traced.constant(value))

    def check_options(self, chat: Chat) -> None:
        super().check_options(chat)
        if chat.options.continue_final_message:
            raise InvalidOption("continue_final_message", "the format does not have it")

    def _message(self, index: int, message: Message) -> dict[str, Any]:
        if any(isinstance(part, int) for part in message.content or ()):
            raise InvalidChat(index, "content", "part_not_supported")
        said: dict[str, Any] = {
            # One of `roles`, which are structure: templates spell control tokens with them.
            "role": Traced.constant(message.role),
            "content": None if message.content is None else message.text,
        }
        if message.tool_calls:
            said["tool_calls"] = [
                {
                    **({"id": call.id} if call.id else {}),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": self._argument(index, call.arguments),
                    },
                }
                for call in message.tool_calls
            ]
        for field in ("name", "reasoning", "tool_call_id"):
            value = getattr(message, field)
            if value is not None:
                said[_FIELDS[field]] = value
        return said

    def _argument(self, index: int, text: str) -> Any:
        if self._arguments == "text":
            return text
        try:
            return parse(text)
        except NotJson:
            raise InvalidChat(index, "tool_calls", "not_json") from None


def load_template(
    name: str,
    file: str | Path,
    *,
    sha256: str | None = None,
    template: str = "default",
    variables: Mapping[str, Any] | None = None,
    options: Mapping[str, Iterable[str]] | None = None,
    encodings: Iterable[str] = (),
    arguments: Arguments = "object",
) -> TemplateFormat:
    """A format by the `chat_template` of a tokenizer_config.json, or by a template's own file.

    Args:
        name: The format's name.
        file: JSON with `chat_template` and its tokens, or the template.
        sha256: What the file's must be, in hexadecimal digits; None for any.
        template: Which template, where the file has several.
        variables: See `TemplateFormat`; beside those of the file.
        options: See `TemplateFormat`.
        encodings: See `TemplateFormat`.
        arguments: See `TemplateFormat`.
    Raises:
        BadTemplate: The file is not what it must be, or its template is none.
        OSError: It cannot be read.
    """
    path = Path(file)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if sha256 is not None and digest != sha256.lower():
        raise BadTemplate(name, None, f"the file has the sha256 {digest}")
    try:
        source = data.decode()
    except UnicodeDecodeError:
        raise BadTemplate(name, None, "the file is not UTF-8") from None
    found: dict[str, Any] = {}
    if path.suffix == ".json":
        source, found = _from_config(name, source, template)
    return TemplateFormat(
        name,
        source,
        variables={**found, **(variables or {})},
        options=options,
        encodings=encodings,
        arguments=arguments,
        source=f"chat template of {path.name}, sha256 {digest[:16]}",
    )


def _from_config(name: str, source: str, which: str) -> tuple[str, dict[str, Any]]:
    try:
        config = json.loads(source)
    except (ValueError, RecursionError):
        raise BadTemplate(name, None, "the file is not JSON") from None
    templates = config.get("chat_template") if isinstance(config, dict) else None
    if isinstance(templates, list):
        named = {
            item.get("name"): item.get("template") for item in templates if isinstance(item, dict)
        }
        templates = named.get(which)
    if not isinstance(templates, str):
        raise BadTemplate(name, None, "the file has no chat_template of this name")
    tokens: dict[str, Any] = {}
    for key in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        token = config.get(f"{key}_token")
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            tokens[f"{key}_token"] = token
    return templates, tokens


def _constants(value: Any) -> Any:
    """A value of the configuration, whose texts are the template's."""
    if isinstance(value, str):
        return Traced.constant(value)
    if isinstance(value, list):
        return [_constants(item) for item in value]
    if isinstance(value, dict):
        return {key: _constants(item) for key, item in value.items()}
    return value


def _size(value: Any) -> tuple[int, int]:
    """How many values there are in one, and characters."""
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


@lru_cache(maxsize=64)
def _finder(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the leftmost special token, and of those that begin there the longest."""
    ordered = sorted((token for token in tokens if token), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


def _pieces(
    rendered: list[tuple[str, int]], finder: re.Pattern[str]
) -> Iterable[tuple[str | Control, int]]:
    """Control tokens and text. Control tokens are looked for in runs of the template's text: one
    that is written in pieces is found, and one that input begins or ends is not."""
    run: list[tuple[str, int]] = []
    for made, owner in rendered:
        plain, place = str(made), 0
        for number, (start, stop) in enumerate(ranges_of(made)):
            if start or number:
                # Input stands before it, which may be empty.
                yield from _controls(run, finder)
                run = []
                if place < start:
                    yield plain[place:start], owner
            run.append((plain[start:stop], owner))
            place = stop
        if place < len(plain):
            yield from _controls(run, finder)
            run = []
            yield plain[place:], owner
    yield from _controls(run, finder)


def _controls(
    run: list[tuple[str, int]], finder: re.Pattern[str]
) -> Iterable[tuple[str | Control, int]]:
    """The pieces of a run; a control token counts for what its first character belongs to."""
    joined = "".join([text for text, _ in run])
    spans = [(found.start(), found.end()) for found in finder.finditer(joined)][::-1]
    start = place = 0
    for text, owner in run:
        stop = start + len(text)
        while spans and spans[-1][0] < stop:
            first, last = spans.pop()
            if place < first:
                yield joined[place:first], owner
            yield Control(joined[first:last]), owner
            place = last
        if place < stop:
            yield joined[place:stop], owner
            place = stop
        start = stop
