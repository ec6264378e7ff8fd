"""Published chat templates, rendered with provenance and plainly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.chat import ChatOptions, Control, InvalidChat, encode_chat
from bytepair_engine.chat.templates import TemplateFormat, load_template

from bench.chat.conversations import Conversations
from bench.chat.oracles import template
from bench.formats.vocabularies import FOLDER


@dataclass(frozen=True)
class Published:
    """A template and the conversations that it accepts.

    Attributes:
        config: The file of the template.
        vocabulary: The tokenizer.json whose tokens it writes.
        which: Which template, where the file has several.
        arguments: How calls' arguments reach it.
    """

    config: str
    vocabulary: str
    which: str = "default"
    arguments: Any = "object"


PUBLISHED = {
    "template-command-r": Published("command_r_plus", "command_r_plus"),
    "template-command-r-tools": Published("command_r_plus", "command_r_plus", "tool_use"),
    "template-deepseek-v3": Published("deepseek_v3", "deepseek_v3", arguments="text"),
    "template-gemma3": Published("gemma3", "gemma3"),
    "template-llama3": Published("llama3", "llama3"),
    "template-llama3.1": Published("llama3_1", "llama3"),
    "template-mistral-nemo": Published("mistral_nemo", "mistral_nemo"),
    "template-qwen2.5": Published("qwen2_5", "qwen2_5"),
    "template-qwen3": Published("qwen3", "qwen3"),
}


def agreement(name: str) -> Callable[[int], bool]:
    """Return a function from a seed to whether both renderings agree: the same text, or both reject
    the chat. Where no text contains a control token, the ids must be those of that text."""
    published = PUBLISHED[name]
    chosen = load_template(
        name,
        FOLDER / f"{published.config}.config.json",
        template=published.which,
        arguments=published.arguments,
    )
    encoding = _encoding(published)
    render = template(published.config, which=published.which)

    def agree(seed: int) -> bool:
        made = Conversations(seed, with_special=seed % 2 == 1)
        messages = made.chat(tools="tool_calls" in chosen.fields)
        tools = made.tools() or None if chosen.tools and made.chance(0.5) else None
        prompts = made.chance(0.7)
        try:
            text = render(_given(messages, published), tools=tools, add_generation_prompt=prompts)
        except Exception:  # what a template raises is any error
            return _rejects(chosen, encoding, messages, tools, prompts)
        found = encode_chat(
            messages,
            encoding=encoding,
            format=chosen,
            tools=tools,
            options=ChatOptions(add_generation_prompt=prompts),
            disallowed_special=(),
        )
        written = "".join(s.name if isinstance(s, Control) else s for s in found.segments)
        if written != text:
            return False
        return made.with_special or found.ids == encoding.encode(text, allowed_special="all")

    return agree


def _rejects(
    chosen: TemplateFormat, encoding: Encoding, messages: Any, tools: Any, prompts: bool
) -> bool:
    options = ChatOptions(add_generation_prompt=prompts)
    try:
        encode_chat(
            messages,
            encoding=encoding,
            format=chosen,
            tools=tools,
            options=options,
            disallowed_special=(),
        )
    except InvalidChat:
        return True
    return False


def _encoding(published: Published) -> Encoding:
    """The encoding, with every token that occurs in the template as a special token."""
    config = json.loads((FOLDER / f"{published.config}.config.json").read_text())
    spelled = json.dumps(config["chat_template"], ensure_ascii=False)
    file = FOLDER / f"{published.vocabulary}.json"
    found = load_encoding(EncodingSpec(name=published.vocabulary, file=file))
    added = () if found.pipeline is None else found.pipeline.added
    others = tuple(t.name for t in added if not t.special and t.name.strip() and t.name in spelled)
    return load_encoding(EncodingSpec(name=published.vocabulary, file=file, also_special=others))


def _given(messages: list[dict[str, Any]], published: Published) -> list[dict[str, Any]]:
    said = json.loads(json.dumps(messages))
    if published.arguments == "object":
        for message in said:
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return list(said)
