"""Compare the ids of chats with publishers' libraries, for every format.

    make exactness-chat

Prints a row for each format: the oracle, the number of random conversations, and how many differ.
Texts contain the spellings of control tokens if the oracle keeps these as text. A template renders
a string, in which they would become control tokens. So for templates half of the chats contain none
and their ids are compared; for the others the rendered text is compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bytepair_engine import Encoding, EncodingSpec, get_encoding, load_encoding
from bytepair_engine.chat import ChatOptions, Control, count_chat, encode_chat
from support.oracle import oracle

from bench.chat.conversations import Conversations
from bench.chat.oracles import harmony, llama, mistral, template
from bench.chat.provenance import PUBLISHED, agreement
from bench.formats.vocabularies import FOLDER

Compare = Callable[[int], bool]


@dataclass(frozen=True)
class Row:
    """One comparison: a function from a seed to whether both results are equal."""

    format: str
    oracle: str
    agree: Compare


def harmony_row() -> Row:
    encoding = get_encoding("o200k_harmony")

    def agree(seed: int) -> bool:
        from openai_harmony import Conversation, RenderConversationConfig, Role

        made = Conversations(seed, with_special=True)
        messages = harmony_chat(made)
        rule = made.random.choice(("keep", "before_first_final"))
        config = RenderConversationConfig(auto_drop_analysis=rule != "keep")
        said = [
            {k: v for k, v in m.items() if k != "constrain"}
            | ({"content_type": f"<|constrain|>{m['constrain']}"} if "constrain" in m else {})
            for m in messages
        ]
        conversation = Conversation.from_json(json.dumps({"messages": said}))
        options = ChatOptions(past_reasoning=rule)  # type: ignore[arg-type]
        if made.chance(0.7):
            expected = harmony().render_conversation_for_completion(
                conversation, Role.ASSISTANT, config
            )
        else:
            expected = harmony().render_conversation_for_training(conversation, config)
            options = replace(
                options, add_generation_prompt=False, format_options={"training": "true"}
            )
        return same(messages, encoding, "harmony", expected, options=options)

    return Row("harmony", "openai-harmony 0.0.8", agree)


def harmony_chat(made: Conversations) -> list[dict[str, Any]]:
    """A conversation in harmony's own fields."""
    messages: list[dict[str, Any]] = []
    if made.chance(0.7):
        system: dict[str, Any] = {"type": "system_content"}
        for key in ("model_identity", "conversation_start_date", "knowledge_cutoff"):
            if made.chance(0.6):
                system[key] = made.text()
        if made.chance(0.6):
            system["reasoning_effort"] = made.random.choice(("Low", "Medium", "High"))
        if made.chance(0.6):
            channels = made.random.sample(["analysis", "commentary", "final"], 2)
            system["channel_config"] = {
                "valid_channels": channels,
                "channel_required": made.chance(0.5),
            }
        if made.chance(0.3):
            system["tools"] = namespaces(made)
        messages.append({"role": "system", "content": [system]})
    if made.chance(0.6):
        developer: dict[str, Any] = {"type": "developer_content"}
        if made.chance(0.7):
            developer["instructions"] = made.text()
        if made.chance(0.7):
            developer["tools"] = namespaces(made)
        messages.append({"role": "developer", "content": [developer]})
    for _ in range(made.random.randint(1, 7)):
        role = made.random.choice(("user", "assistant", "assistant", "tool", "developer"))
        message: dict[str, Any] = {"role": role, "content": made.text()}
        if made.chance(0.2):
            parts = [{"type": "text", "text": made.text()} for _ in range(2)]
            message["content"] = parts
        if role == "tool" or made.chance(0.2):
            message["name"] = made.random.choice(("functions.f", made.text()))
        if made.chance(0.6):
            channels = ["analysis", "final", "commentary", made.text()]
            message["channel"] = made.random.choice(channels)
        if made.chance(0.3):
            message["recipient"] = made.random.choice(("all", "functions.f", made.text()))
        if made.chance(0.3):
            key = made.random.choice(("constrain", "content_type"))
            message[key] = made.random.choice(("json", f"c{made.text()}"))
        messages.append(message)
    return messages


def namespaces(made: Conversations) -> dict[str, Any]:
    found = {}
    for name in made.random.sample(["functions", "browser", "Ünamed"], made.random.randint(1, 2)):
        tools = [
            {"name": t["function"]["name"], "description": t["function"]["description"]}
            | ({"parameters": t["function"]["parameters"]} if t["function"]["parameters"] else {})
            for t in made.tools()
        ]
        found[name] = {"name": name, "tools": tools}
        if made.chance(0.5):
            found[name]["description"] = f"{made.text()}\r\n{made.text()}"
    return found


def same(
    messages: list[dict[str, Any]],
    encoding: Encoding,
    chat_format: str,
    expected: list[int],
    **given: Any,
) -> bool:
    found = encode_chat(
        messages, encoding=encoding, format=chat_format, disallowed_special=(), **given
    )
    return found.ids == list(expected)


def llama_row() -> Row:
    names = llama().tokenizer.special_tokens
    file = FOLDER / "llama3.tiktoken"
    spec = EncodingSpec(name="llama3", file=file, pattern="llama3", special_tokens=names)
    encoding = load_encoding(spec)

    def agree(seed: int) -> bool:
        from llama_models.datatypes import RawMessage, ToolCall

        made = Conversations(seed, with_special=True)
        messages = made.chat(tools=True)
        said = []
        for message in messages:
            calls = [
                ToolCall(
                    call_id=call["id"],
                    tool_name=call["function"]["name"],
                    arguments=json.loads(call["function"]["arguments"]),
                )
                for call in message.get("tool_calls") or ()
            ]
            content = message["content"] or ""
            said.append(RawMessage(role=message["role"], content=content, tool_calls=calls))
        return same(messages, encoding, "llama3", llama().encode_dialog_prompt(said).tokens)

    return Row("llama3", "llama-models 0.3.0", agree)


@dataclass(frozen=True)
class Template:
    """A format and the published template that it is compared with."""

    format: str
    vocabulary: str
    also_special: tuple[str, ...] = ()
    system: bool = True
    #: Whether chats have tool calls, and whether they also list the tools.
    tools: bool = False
    offers: bool = True
    #: Whether calls' arguments reach the template as objects.
    objects: bool = False
    #: Strings in an assistant's content that the template interprets and the format does not.
    reads: tuple[str, ...] = ()
    #: The template; None for that of the vocabulary.
    text: str | None = None


def template_row(given: Template) -> Row:
    file = FOLDER / f"{given.vocabulary}.json"
    encoding = load_encoding(
        EncodingSpec(name=given.vocabulary, file=file, also_special=given.also_special)
    )
    render = template(given.vocabulary, given.text)

    source = "ChatML's template" if given.text else f"chat_template of {given.vocabulary}"

    def agree(seed: int) -> bool:
        made = Conversations(seed, with_special=seed % 2 == 1)
        messages = made.chat(system=given.system, tools=given.tools)
        tools = made.tools() if given.tools and given.offers and made.chance(0.4) else None
        prompts = made.chance(0.7)
        for message in messages:
            for spelling in given.reads:
                if message["role"] == "assistant" and message["content"]:
                    message["content"] = message["content"].replace(spelling, "")
        text = render(
            in_template(messages, given), tools=tools or None, add_generation_prompt=prompts
        )
        options = ChatOptions(add_generation_prompt=prompts)
        found = encode_chat(
            messages,
            encoding=encoding,
            format=given.format,
            tools=tools,
            options=options,
            disallowed_special=(),
        )
        written = "".join(s.name if isinstance(s, Control) else s for s in found.segments)
        if written != text:
            return False
        return made.with_special or found.ids == encoding.encode(text, allowed_special="all")

    return Row(given.format, f"{source}, Jinja2 3.1.6", agree)


def in_template(messages: list[dict[str, Any]], given: Template) -> list[dict[str, Any]]:
    said = json.loads(json.dumps(messages))
    for message in said:
        if message["content"] is None and given.format != "deepseek-v3":
            message["content"] = ""
        for call in message.get("tool_calls") or ():
            if given.objects:
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return list(said)


_CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def openai_row() -> Row:
    """The function of the cookbook's notebook, on messages without tools."""

    def agree(seed: int) -> bool:
        made = Conversations(seed, with_special=True)
        name = made.random.choice(("cl100k_base", "o200k_base"))
        messages = made.chat()
        for message in messages:
            if made.chance(0.3):
                message["name"] = made.text()
        tokens = oracle(name)
        expected = 3
        for message in messages:
            expected += 3 + ("name" in message)
            expected += sum(len(tokens.encode(v, disallowed_special=())) for v in message.values())
        found = count_chat(messages, encoding=get_encoding(name), format="openai-chat")
        return (found.count, found.accuracy) == (expected, "exact")

    return Row("openai-chat", "the cookbook's rule by tiktoken 0.14.0, counts", agree)


#: Versions without a published file: their control tokens are added to a published table.
_NEWER = {
    "tekken_v11": ("v11", "[CALL_ID]", "[ARGS]"),
    "tekken_v13": ("v13", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"),
}


def write_newer(name: str) -> None:
    """Write the file of one of `_NEWER`; other names have published files."""
    if name not in _NEWER:
        return
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    version, *added = _NEWER[name]
    document = json.loads((FOLDER / "tekken_240911.json").read_text())
    document["config"]["version"] = version
    names = [token["token_str"] for token in Tekkenizer.DEPRECATED_SPECIAL_TOKENS]
    document["special_tokens"] = [
        {"rank": rank, "token_str": token, "is_control": True}
        for rank, token in enumerate([*names, *added])
    ]
    (FOLDER / f"{name}.json").write_text(json.dumps(document))


def mistral_row(version: str, name: str, *, system: bool = True, tools: bool = False) -> Row:
    write_newer(name)
    # For v1 there is also a tokenizer.json, by another publisher.
    files = (FOLDER / f"{name}{suffix}" for suffix in (".model", ".json"))
    file = next(file for file in files if file.exists())
    encoding = load_encoding(EncodingSpec(name=name, file=file))

    def agree(seed: int) -> bool:
        from mistral_common.protocol.instruct.request import ChatCompletionRequest

        made = Conversations(seed, with_special=True, calls=1 if version == "v2" else 2)
        messages = made.chat(system=system, tools=tools)
        if messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": made.said()})
        offered = made.tools() if tools and made.chance(0.5) else []
        request = ChatCompletionRequest.from_openai(messages=messages, tools=offered or None)
        expected = mistral(version, file).encode_chat_completion(request).tokens
        found = f"mistral-{version}"
        return same(messages, encoding, found, expected, tools=offered)

    return Row(f"mistral-{version}", f"mistral-common 1.13.1, {name}", agree)


def published_row(name: str) -> Row:
    return Row(name, "its plain rendering by Jinja2 3.1.6", agreement(name))


_QWEN3 = (
    "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>",
)  # fmt: skip

_DEEPSEEK = (
    "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "<｜tool▁sep｜>",
)  # fmt: skip

ROWS: dict[str, Callable[[], Row]] = {
    "harmony": harmony_row,
    "openai-chat": openai_row,
    "chatml": lambda: template_row(Template("chatml", "qwen2_5", text=_CHATML)),
    "llama3": llama_row,
    "qwen2.5": lambda: template_row(
        Template("qwen2.5", "qwen2_5", ("<tool_call>", "</tool_call>"), tools=True, objects=True)
    ),
    "qwen3": lambda: template_row(
        Template("qwen3", "qwen3", _QWEN3, tools=True, reads=("</think>",))
    ),
    "gemma": lambda: template_row(Template("gemma", "gemma3")),
    "deepseek-v3": lambda: template_row(
        Template("deepseek-v3", "deepseek_v3", _DEEPSEEK, tools=True, offers=False)
    ),
    "mistral-v1": lambda: mistral_row("v1", "mistral_v1"),
    "mistral-v2": lambda: mistral_row("v2", "mistral_v2", tools=True),
    "mistral-v3": lambda: mistral_row("v3", "mistral_v3", tools=True),
    "mistral-v3-tekken": lambda: mistral_row("v3", "tekken_240718", tools=True),
    "mistral-v7": lambda: mistral_row("v7", "mistral_v7", tools=True),
    "mistral-v7-tekken": lambda: mistral_row("v7", "tekken_240911", tools=True),
    "mistral-v11": lambda: mistral_row("v11", "tekken_v11", tools=True),
    "mistral-v13": lambda: mistral_row("v13", "tekken_v13", tools=True),
    **{name: partial(published_row, name) for name in PUBLISHED},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help="formats; all of them by default")
    parser.add_argument("--count", type=int, default=1000, help="conversations for each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| format | oracle | conversations | differing |\n|---|---|---:|---:|")
    failed = False
    for name in given.rows or ROWS:
        row = ROWS[name]()
        seeds = range(given.seed, given.seed + given.count)
        differing = [seed for seed in seeds if not row.agree(seed)]
        print(f"| {row.format} | {row.oracle} | {given.count} | {len(differing)} |", flush=True)
        if differing:
            failed = True
            print(f"differing seeds of {name}: {differing[:10]}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
