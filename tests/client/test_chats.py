"""The methods for chats of both clients return what the engine returns."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from bytepair_client import (
    AsyncTokenizerClient,
    EstimateNotAllowed,
    FingerprintMismatch,
    InputTooLarge,
    InvalidChat,
    InvalidOption,
    InvalidUtf8,
    TokenizerClient,
    TokenizerError,
    UnknownChatFormat,
)
from bytepair_engine import get_encoding
from bytepair_engine.chat import (
    count_chat,
    encode_chat,
    fit_chat,
    get_chat_format,
    list_chat_formats,
)
from conftest import Serve
from support.serving import RunningServer, write_config
from support.shell import Shell

TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]
CALL = {"name": "f", "arguments": "{}"}
TURN = {"role": "user", "content": "a"}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": [{"type": "system_content", "reasoning_effort": "Low"}]},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {}}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "done", "refusal": None, "annotations": []},
    {"role": "user", "content": "and?"},
]


@pytest.mark.slow
def test_both_clients_agree_with_the_engine(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    config = write_config(
        tmp_path_factory.mktemp("chat"),
        'builtin_encodings = ["o200k_harmony"]\n[ceiling.default]\nformats = "ALL"\n',
    )
    engine: dict[str, Any] = {"encoding": get_encoding("o200k_harmony"), "format": "harmony"}
    given: dict[str, Any] = {"format": "harmony", "tools": TOOLS, "past_reasoning": "keep"}
    count = count_chat(CHAT, **engine, tools=TOOLS).count
    ids = encode_chat(CHAT, **engine, tools=TOOLS).ids
    kept = fit_chat(CHAT, count - 1, **engine, tools=TOOLS).kept

    async def ask(target: str) -> list[Any]:
        async with AsyncTokenizerClient(target, encoding="o200k_harmony") as client:
            return [
                await client.count_chat(CHAT, **given),
                await client.encode_chat(CHAT, **given),
                await client.fit_chat(CHAT, count - 1, **given),
            ]

    with (
        RunningServer("--config", config) as server,
        TokenizerClient(server.target, encoding="o200k_harmony") as client,
    ):
        assert asyncio.run(ask(server.target)) == [count, ids, kept]
        assert client.count_chat(CHAT, **given) == count
        assert client.encode_chat(CHAT, **given) == ids
        assert client.fit_chat(CHAT, count - 1, **given) == kept
        raw = client.with_raw_response.count_chat(CHAT, **given)
        assert sum(raw.message_counts) + raw.tools_count + raw.frame_count == count
        with pytest.raises(TokenizerError) as rejected:
            client.fit_chat(CHAT, 1, **given)
        assert rejected.value.reason == "BUDGET_TOO_SMALL"
        assert rejected.value.metadata["budget"] == "1"


@pytest.mark.slow
def test_the_command_counts_a_file(server: RunningServer, tmp_path: Path) -> None:
    shell = Shell(tmp_path, server.target)
    chat = [{"role": "user", "content": "hello"}]
    for name, content in {"chat": chat, "tools": {"messages": chat, "tools": TOOLS}}.items():
        (tmp_path / name).write_text(json.dumps(content))
    count = ("count-chat", "--format", "openai-chat")
    assert shell(*count, "chat") == "8 chat (exact)\n"
    assert "(estimate)" in shell(*count, "tools")
    output = json.loads(shell(*count, "--json", "chat"))
    assert (output["files"][0]["count"], output["files"][0]["message_counts"]) == (8, [5])
    pinned = (*count, "--expected-format-fingerprint")
    assert shell(*pinned, output["files"][0]["format_fingerprint"], "chat") == "8 chat (exact)\n"
    assert shell(*pinned, "sha256:0", "chat", status=1, errors="not 'sha256:0'") == ""
    assert shell(*count, stdin=b'"no"', status=1, errors="expected a list of messages") == ""
    other = b'{"messages": [], "functions": []}'
    assert shell(*count, stdin=other, status=1, errors="unknown field 'functions'") == ""


@pytest.mark.slow
def test_batches_of_chats_of_any_size(serve: Serve) -> None:
    """A batch that is too large for one request counts each chat as a single call does."""
    server = serve("--max-batch-items", "3", "--max-input-bytes", "2000")
    done: list[int] = []
    given: dict[str, Any] = {"format": "openai-chat", "encoding": "gpt-4", "allow_estimate": True}
    plain = [[{"role": "user", "content": "word " * n}] for n in range(0, 300, 25)]
    chats: list[Any] = [*plain, {"messages": plain[1], "tools": TOOLS}, {"messages": plain[2]}]

    async def ask(target: str) -> list[int]:
        async with AsyncTokenizerClient(target) as client:
            counts: list[int] = await client.count_chat_batch(chats, **given)
            return counts

    with TokenizerClient(server.target) as client:
        counts = client.count_chat_batch(iter(chats), progress=done.append, **given)
        singles = [client.count_chat(chat, **given) for chat in plain]
        assert counts[: len(plain)] == singles
        for tools in (TOOLS, [json.dumps(tool) for tool in TOOLS]):
            assert counts[-2] == client.count_chat(plain[1], tools=tools, **given)
        assert counts[-1] == singles[2]
        assert done[-1] == len(chats)
        assert asyncio.run(ask(server.target)) == counts
        assert client.count_chat_batch([], **given) == []
        assert client.count_chat_batch(chats, limit=5, **given) == [min(n, 6) for n in counts]
        raw = client.with_raw_response.count_chat_batch(chats, **given)
        assert (raw.encoding, raw.format) == ("cl100k_base", "openai-chat")
        assert [result.count for result in raw.results] == counts
        alone = client.with_raw_response.count_chat(plain[0], **given)
        assert (raw.audience, raw.rule) == (alone.audience, alone.rule)


@pytest.mark.slow
def test_the_errors_of_single_chats(serve: Serve) -> None:
    server = serve("--max-input-bytes", "2000")
    good = [{"role": "user", "content": "x"}]
    bad = [{"role": "nobody", "content": "x"}]
    large = [{"role": "user", "content": "word " * 1000}]
    given: dict[str, Any] = {"format": "openai-chat", "encoding": "gpt-4"}
    with TokenizerClient(server.target) as client:
        for batch, error in (([good, bad], InvalidChat), ([good, large], InputTooLarge)):
            with pytest.raises(error) as caught:
                client.count_chat_batch(batch, **given)
            assert caught.value.item == 1
        # The third is sent twice: in the batch, and alone.
        chats: list[Any] = [good, bad, iter(large), good]
        first, second, third, last = client.count_chat_batch(chats, return_exceptions=True, **given)
        assert first == last == client.count_chat(good, **given)
        assert isinstance(second, InvalidChat)
        assert isinstance(third, InputTooLarge)
        with pytest.raises(InvalidOption, match="message 0: role must be a string") as shapeless:
            client.count_chat_batch([good, [{"content": 1}]], **given)
        assert shapeless.value.item == 1


@pytest.mark.slow
def test_an_estimate_is_an_error_unless_it_is_allowed(server: RunningServer) -> None:
    """A number that the caller may bill is exact; see docs/chat.md."""
    plain = [{"role": "user", "content": "hello"}]
    image = [{"role": "user", "content": [{"type": "counted_tokens", "tokens": 85}]}]
    for_format: dict[str, Any] = {"format": "openai-chat"}

    async def ask(**given: Any) -> int:
        async with AsyncTokenizerClient(server.target) as client:
            count: int = await client.count_chat(plain, **given)
            return count

    with TokenizerClient(server.target, encoding="gpt-4o") as client:
        assert client.count_chat(plain, **for_format) == 8
        estimates: list[tuple[Any, dict[str, Any]]] = [
            (plain, {"tools": TOOLS}),
            (plain, {"encoding": "gpt-5"}),
            (plain, {"encoding": "gpt-5", "limit": 3}),
            (image, {}),
        ]
        for chat, given in estimates:
            given |= for_format
            with pytest.raises(EstimateNotAllowed, match="allow_estimate=True") as refused:
                client.count_chat(chat, **given)
            estimate = client.count_chat(chat, allow_estimate=True, **given)
            assert refused.value.count == estimate
            assert client.with_raw_response.count_chat(chat, **given).count == estimate
        with pytest.raises(EstimateNotAllowed):
            asyncio.run(ask(encoding="gpt-5", **for_format))
        chats: list[Any] = [plain, {"messages": plain, "tools": TOOLS}]
        with pytest.raises(EstimateNotAllowed) as refused:
            client.count_chat_batch(chats, **for_format)
        assert refused.value.item == 1
        first, second = client.count_chat_batch(chats, return_exceptions=True, **for_format)
        assert first == 8
        assert isinstance(second, EstimateNotAllowed)
        assert second.item == 1
        estimate = client.count_chat(plain, tools=TOOLS, allow_estimate=True, **for_format)
        assert client.count_chat_batch(chats, allow_estimate=True, **for_format) == [8, estimate]


@pytest.mark.slow
def test_the_formats_are_described(server: RunningServer) -> None:
    with TokenizerClient(server.target) as client:
        formats = {each.name: each for each in client.list_chat_formats()}
        assert set(formats) == set(list_chat_formats())
        for name, described in formats.items():
            chosen = get_chat_format(name)
            assert described == client.get_chat_format(name)
            pinned: dict[str, Any] = {"format": name, "expected_format_fingerprint": "sha256:other"}
            for call in (client.count_chat, client.count_chat_batch, client.encode_chat):
                with pytest.raises(FingerprintMismatch):
                    call([], encoding="o200k_harmony", **pinned)
            assert (described.fingerprint, described.source) == (chosen.fingerprint, chosen.source)
        assert formats["harmony"].encodings == ("o200k_harmony",)
        assert (formats["harmony"].is_exact, formats["harmony"].encodes) == (True, True)
        assert formats["openai-chat"].encodes is False
        pin = formats["openai-chat"].fingerprint
        pinned = {"format": "openai-chat", "expected_format_fingerprint": pin}
        assert client.count_chat([], encoding="gpt-4", **pinned) == 3
        with pytest.raises(UnknownChatFormat, match="list_chat_formats"):
            client.get_chat_format("none")


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("hello", "must be a mapping"),
        ({"content": "a"}, "role must be a string"),
        ({"role": 1}, "role must be a string"),
        ({"role": b"user"}, "role must be a string"),
        ({"role": "user", "content": 3}, "content must be a string, or"),
        (
            {"role": "user", "content": ["a", {"type": "text", "text": b"a"}]},
            "content[1]: content must be a string, or",
        ),
        (
            {"role": "user", "content": {"type": "text", "text": "a"}},
            "content must be a string, or",
        ),
        ({"role": "user", "content": [{"text": "a"}]}, "content[0]: content must be a string, or"),
        (
            {"role": "user", "content": [{"type": "counted_tokens", "tokens": -5}]},
            'content[0]: content must be a string, or a list of parts such as {"type": "text", '
            '"text": "…"}, '
            'or {"type": "counted_tokens", "tokens": N} where N is 0 or more',
        ),
        ({"role": "user", "name": 5}, "name must be a string"),
        ({"role": "user", "name": []}, "name must be a string"),
        ({"role": "user", "name": b"a"}, "name must be a string"),
        ({"role": "tool", "tool_call_id": b"a"}, "tool_call_id must be a string"),
        ({"role": "assistant", "reasoning": b"a"}, "reasoning must be a string"),
        ({"role": "assistant", "reasoning_content": b"a"}, "reasoning_content must be a string"),
        ({"role": "assistant", "reasoning_content": 5}, "reasoning_content must be a string"),
        (
            {"role": "assistant", "reasoning": "", "reasoning_content": "a"},
            "reasoning and reasoning_content name the same text, and differ",
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [CALL, {"type": "custom", "name": "f", "arguments": "{}"}],
            },
            "tool_calls[1]: tool_calls must be a list of calls",
        ),
        ({"role": "assistant", "tool_calls": {"name": "f"}}, "tool_calls must be a list of calls"),
        (
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": None, "arguments": "{}"}}],
            },
            "tool_calls[0]: tool_calls must be a list of calls",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": b"f", "arguments": "{}"}]},
            "tool_calls[0]: tool_calls must be a list of calls",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": b"i", "name": "f", "arguments": "{}"}]},
            "tool_calls[0]: tool_calls must be a list of calls",
        ),
        ({"role": "user", "mood": "a"}, "unknown field 'mood'"),
    ],
)
def test_a_message_of_another_shape_is_rejected(message: Any, problem: str) -> None:
    with TokenizerClient("nowhere:1", encoding="e") as client:
        with pytest.raises(InvalidOption) as caught:
            client.count_chat([{"role": "user", "content": "a"}, message], format="harmony")
        assert caught.value.message.startswith(f"messages: message 1: {problem}")


@pytest.mark.parametrize(
    ("chat", "at_fault"),
    [
        ([{"role": "user", "content": "é\ud800"}], "message 0: content"),
        ([{"role": "user", "content": ["a", "é\ud800"]}], "message 0: content[1]"),
        ([TURN, {"role": "user", "content": "a", "name": "é\ud800"}], "message 1: name"),
        ({"messages": [], "tools": ['{"é\ud800": 1}']}, "tool 0"),
    ],
)
def test_a_lone_surrogate_in_a_chat_is_not_utf8(chat: Any, at_fault: str) -> None:
    with TokenizerClient("nowhere:1", encoding="e") as client, pytest.raises(InvalidUtf8) as caught:
        client.count_chat_batch([[TURN], chat], format="harmony")
    offset = 4 if at_fault == "tool 0" else 2
    assert f"{at_fault} holds a lone surrogate at byte {offset}" in caught.value.message
    assert (caught.value.item, caught.value.byte_offset) == (1, offset)


def test_a_chat_or_tools_of_another_shape_are_rejected() -> None:
    with TokenizerClient("nowhere:1", encoding="e") as client:
        with pytest.raises(InvalidOption, match="chats: each must be a list of messages"):
            client.count_chat_batch([{"role": "user", "content": "a"}], format="harmony")
        with pytest.raises(InvalidOption, match="chats: unknown field 'tool'; a chat has messages"):
            client.count_chat_batch([{"messages": [], "tool": []}], format="harmony")
        no_list: list[Any] = [TOOLS[0], 5, b"5"]
        for tools in no_list:
            with pytest.raises(InvalidOption, match="tools: must be a list"):
                client.count_chat([], tools=tools, format="harmony")
        no_tool: list[tuple[Any, str]] = [("weather", "'weather'"), (5, "int"), (None, "NoneType")]
        for tool, given in no_tool:
            problem = re.escape(
                'tools: tool 1 must be a definition such as {"type": "function", "function": {…}}, '
                f"or its JSON, not {given}"
            )
            with pytest.raises(InvalidOption, match=f"^{problem}$"):
                client.count_chat([], tools=[*TOOLS[:1], tool], format="harmony")
