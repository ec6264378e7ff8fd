"""The format of gpt-oss, by openai/harmony."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.formats.typescript import type_of
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout
from bytepair_engine.chat.messages import Message, Structured, Tool, with_json

START: Final = Control("<|start|>")
END: Final = Control("<|end|>")
MESSAGE: Final = Control("<|message|>")
CHANNEL: Final = Control("<|channel|>")
CONSTRAIN: Final = Control("<|constrain|>")
RETURN: Final = Control("<|return|>")
CALL: Final = Control("<|call|>")


class Harmony(ChatFormat):
    """Messages exactly as openai/harmony renders them.

    The content of a system or developer message is plain text, or a part
    {"type": "system_content" | "developer_content", …} with the fields of openai-harmony's
    `to_dict`. `tools` become the namespace `functions` of the first developer content, or else of
    an additional developer message after the system messages.

    Fields of OpenAI's format that harmony lacks are translated as gpt-oss was trained:
    `reasoning` becomes a message on the channel `analysis`; a call becomes a message on
    `commentary` to `functions.NAME` with the constraint `json`; a result becomes a message from
    `functions.NAME`. Only the channel names `analysis` and `final` are interpreted.
    """

    name = "harmony"
    source = "openai/harmony src/encoding.rs @ec7606d"
    audience = "gpt-oss models"
    controls = frozenset(
        token.name for token in (START, END, MESSAGE, CHANNEL, CONSTRAIN, RETURN, CALL)
    )
    roles = ("system", "developer", "user", "assistant", "tool")
    fields = frozenset(
        {
            "name",
            "reasoning",
            "tool_calls",
            "tool_call_id",
            "channel",
            "recipient",
            "content_type",
            "constrain",
            "structured",
        }
    )
    tools = True
    past_reasoning = (
        "keep",
        "before_first_final",
        "before_last_final_if_answered",
        "before_last_final",
    )
    option_values: ClassVar = {"training": ("false", "true")}

    def render(self, chat: Chat) -> Layout:
        messages = _translated(chat)
        position = _tools_position(messages) if chat.tools else None
        has_functions = bool(chat.tools) or any(_has_functions(m.content) for _, m in messages)
        dropped = _dropped(chat, [message for _, message in messages])
        layout = Layout()
        for number, (index, message) in enumerate(messages):
            if position == (number, False):
                _add_tools_message(layout, chat.tools)
            if number in dropped:
                continue
            layout.owner = index
            tools = chat.tools if position == (number, True) else ()
            _add_message(layout, index, message, has_functions, tools)
        if position == (len(messages), False):
            _add_tools_message(layout, chat.tools)
        self._finish(layout, chat, messages)
        return layout

    def _finish(self, layout: Layout, chat: Chat, messages: list[tuple[int, Message]]) -> None:
        options = chat.options
        if options.continue_final_message:
            layout.pieces.pop()
            layout.owners.pop()
        elif self.option(chat, "training") == "true":
            last = messages[-1][1] if messages else None
            if last is not None and last.role == "assistant" and last.channel == "final":
                layout.pieces[-1] = RETURN
        elif options.add_generation_prompt:
            layout.owner = FRAME
            layout.add(START, "assistant")


def _translated(chat: Chat) -> list[tuple[int, Message]]:
    """Translate messages to harmony's, each with the index of its original."""
    names: dict[str, str] = {}
    found: list[tuple[int, Message]] = []
    for index, message in enumerate(chat.messages):
        if message.role == "tool" and message.name is None:
            if message.tool_call_id not in names:
                raise InvalidChat(index, "tool_call_id", "tool_result_without_call")
            name = f"functions.{names[message.tool_call_id]}"
            message = Message(
                "tool", message.content, name, channel="commentary", recipient="assistant"
            )
        elif message.tool_calls or message.reasoning is not None:
            if message.role != "assistant":
                raise InvalidChat(index, "role", "only_assistants_call_or_reason")
            found += [(index, part) for part in _spread(message)]
            names |= {call.id: call.name for call in message.tool_calls}
            continue
        found.append((index, message))
    return found


def _spread(message: Message) -> Iterable[Message]:
    if message.reasoning is not None:
        yield Message("assistant", (message.reasoning,), channel="analysis")
    if message.content is not None:
        channel = message.channel or ("commentary" if message.tool_calls else "final")
        yield Message(
            "assistant", message.content, message.name, channel=channel,
            recipient=message.recipient, content_type=message.content_type,
            constrain=message.constrain,
        )  # fmt: skip
    for call in message.tool_calls:
        yield Message(
            "assistant",
            (call.arguments,),
            channel="commentary",
            recipient=f"functions.{call.name}",
            constrain="json",
        )


def _dropped(chat: Chat, messages: list[Message]) -> frozenset[int]:
    """Return the messages on the channel `analysis` that are dropped."""
    rule = chat.options.past_reasoning
    finals = [number for number, message in enumerate(messages) if message.channel == "final"]
    if rule == "keep" or not finals:
        return frozenset()
    if rule == "before_last_final":
        finals = [number for number in finals if messages[number].role == "assistant"]
        end = finals[-1] if finals else 0
    else:
        assistants = [message for message in messages if message.role == "assistant"]
        if not assistants or assistants[-1].channel != "final":
            return frozenset()
        end = finals[-1] if rule == "before_last_final_if_answered" else finals[0]
    return frozenset(n for n in range(end) if messages[n].channel == "analysis")


def _tools_position(messages: list[tuple[int, Message]]) -> tuple[int, bool]:
    """Return the position of the tools: a message, and whether inside it (else before it)."""
    head = 0
    for number, (_, message) in enumerate(messages):
        if message.role == "developer" and any(
            isinstance(part, Structured) for part in message.content or ()
        ):
            return number, True
        if message.role == "system" and head == number:
            head += 1
    return head, False


def _add_tools_message(layout: Layout, tools: Sequence[Tool]) -> None:
    layout.owner = TOOLS
    layout.add(START, "developer", MESSAGE, _tools_section({"functions": _functions(tools)}), END)


def _add_message(
    layout: Layout, index: int, message: Message, has_functions: bool, tools: Sequence[Tool]
) -> None:
    layout.add(START)
    if message.role == "tool":
        if message.name is None:
            raise InvalidChat(index, "name", "tool_without_name")
        layout.add(message.name)
    else:
        layout.add(message.role)
        if message.name is not None:
            layout.add(f":{message.name}")
    if message.recipient is not None and message.recipient != "all":
        layout.add(f" to={message.recipient}")
    if message.channel is not None:
        layout.add(CHANNEL, message.channel)
    if message.content_type is not None:
        if message.constrain is not None or message.content_type.startswith(CONSTRAIN.name):
            raise InvalidChat(index, "content_type", "use_constrain")
        layout.add(f" {message.content_type}")
    if message.constrain is not None:
        layout.add(" ", CONSTRAIN, message.constrain)
    layout.add(MESSAGE)
    for at, part in enumerate(message.content or ()):
        path = f"content[{at}]"
        if not isinstance(part, Structured):
            layout.add(part)
        elif part.kind != f"{message.role}_content":
            raise InvalidChat(index, path, "part_in_wrong_role")
        elif part.kind == "system_content":
            layout.add(_system_text(index, path, part.fields, has_functions))
        else:
            layout.add(_developer_text(index, path, part.fields, tools))
            tools = ()
    is_call = message.role == "assistant" and message.recipient is not None
    layout.add(CALL if is_call else END)


#: The defaults of openai-harmony's SystemContent; null removes a field.
_SYSTEM_DEFAULTS: Final = {
    "model_identity": "You are ChatGPT, a large language model trained by OpenAI.",
    "reasoning_effort": "Medium",
    "knowledge_cutoff": "2024-06",
    "channel_config": {
        "valid_channels": ["analysis", "commentary", "final"],
        "channel_required": True,
    },
}


def _system_text(index: int, path: str, fields: Mapping[str, Any], has_functions: bool) -> str:
    known = ("model_identity", "knowledge_cutoff", "conversation_start_date", "reasoning_effort")
    _check_fields(index, path, fields, {*known, "tools", "channel_config", "type"})
    fields = {**_SYSTEM_DEFAULTS, **fields}
    identity, cutoff, date, effort = (_text(index, path, fields, key) for key in known)
    top = [] if identity is None else [identity]
    if cutoff is not None:
        top.append(f"Knowledge cutoff: {cutoff}")
    if date is not None:
        top.append(f"Current date: {date}")
    sections = ["\n".join(top)] if top else []
    if effort is not None:
        if effort.lower() not in ("low", "medium", "high"):
            raise InvalidChat(index, path, "reasoning_effort_unknown")
        sections.append(f"Reasoning: {effort.lower()}")
    if fields.get("tools"):
        sections.append(_tools_section(_namespaces(index, path, fields["tools"])))
    config = fields.get("channel_config")
    channels = (
        _strings(index, path, config.get("valid_channels")) if isinstance(config, Mapping) else []
    )
    if channels:
        header = f"# Valid channels: {', '.join(channels)}."
        if config and config.get("channel_required"):
            header += " Channel must be included for every message."
        if has_functions:
            header += "\nCalls to these tools must go to the commentary channel: 'functions'."
        sections.append(header)
    return "\n\n".join(sections)


def _developer_text(index: int, path: str, fields: Mapping[str, Any], tools: Sequence[Tool]) -> str:
    _check_fields(index, path, fields, {"instructions", "tools", "type"})
    instructions = _text(index, path, fields, "instructions")
    sections = [] if instructions is None else ["# Instructions", instructions]
    namespaces = _namespaces(index, path, fields.get("tools") or {})
    if tools:
        if "functions" in namespaces:
            raise InvalidChat(index, path, "functions_given_twice")
        namespaces["functions"] = _functions(tools)
    if namespaces:
        sections.append(_tools_section(namespaces))
    return "\n\n".join(sections)


#: A namespace of tools: name, description, and the name, description and parameters of each tool.
_Namespace = tuple[str, str | None, Sequence[tuple[str, str, Any]]]


def _functions(tools: Sequence[Tool]) -> _Namespace:
    return "functions", None, [(tool.name, tool.description, tool.parameters) for tool in tools]


def _namespaces(index: int, path: str, tools: object) -> dict[str, _Namespace]:
    if not isinstance(tools, Mapping):
        raise InvalidChat(index, path, "tools_not_an_object")
    found: dict[str, _Namespace] = {}
    for key, config in tools.items():
        if not isinstance(config, Mapping) or not isinstance(config.get("tools"), (list, tuple)):
            raise InvalidChat(index, path, "namespace_not_an_object")
        name = _text(index, path, config, "name")
        described = []
        for tool in config["tools"]:
            if not isinstance(tool, Mapping):
                raise InvalidChat(index, path, "tool_not_an_object")
            tool_name = _text(index, path, tool, "name")
            description = _text(index, path, tool, "description")
            if tool_name is None or description is None:
                raise InvalidChat(index, path, "tool_without_name_or_description")
            described.append((tool_name, description, tool.get("parameters")))
        if name is None:
            raise InvalidChat(index, path, "namespace_without_name")
        found[key] = (name, _text(index, path, config, "description"), described)
    return found


def _has_functions(content: Iterable[object] | None) -> bool:
    for part in content or ():
        if isinstance(part, Structured) and part.kind == "developer_content":
            tools = part.fields.get("tools")
            config = tools.get("functions") if isinstance(tools, Mapping) else None
            if isinstance(config, Mapping) and config.get("tools"):
                return True
    return False


def _tools_section(namespaces: Mapping[str, _Namespace]) -> str:
    sections = ["# Tools"]
    for _, (name, description, tools) in sorted(namespaces.items()):
        lines = [f"## {name}\n"]
        if description is not None:
            comment = "// " if tools else ""
            lines += [comment + line for line in _lines(description)]
        if tools:
            lines.append(f"namespace {name} {{\n")
            for tool, text, parameters in tools:
                lines += [f"// {line}" for line in _lines(text)]
                argument = "" if parameters is None else f"_: {_type(parameters)}"
                lines.append(f"type {tool} = ({argument}) => any;\n")
            lines.append(f"}} // namespace {name}")
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def _type(parameters: Any) -> str:
    return str(with_json(None, "tools", lambda: type_of(parameters)))


def _lines(text: str) -> list[str]:
    """Split lines like Rust's `str::lines`: at LF or CR LF."""
    *ended, rest = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([rest] if rest else [])


def _check_fields(index: int, path: str, fields: Mapping[str, Any], known: set[str]) -> None:
    if not known.issuperset(fields):
        raise InvalidChat(index, path, "field_unknown")


def _text(index: int, path: str, fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidChat(index, path, "not_a_string")
    return value


def _strings(index: int, path: str, values: object) -> list[str]:
    if values is None:
        return []
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise InvalidChat(index, path, "not_a_list_of_strings")
    return list(values)
