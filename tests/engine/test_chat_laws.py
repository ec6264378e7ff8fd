"""Laws of every chat format and every chat: no injection, counts that add up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bytepair_engine.chat import (
    ChatOptions,
    Control,
    InvalidChat,
    Message,
    ToolCall,
    count_chat,
    encode_chat,
    get_chat_format,
    list_chat_formats,
)
from bytepair_engine.chat.counting import count_texts, read_chat
from bytepair_engine.chat.messages import read_messages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chats import Odd, encoding_for, filled, structures, texts

REJECTED = ("part_not_supported", "content_and_tool_calls")
ENCODING_FORMATS = [name for name in list_chat_formats() if get_chat_format(name).encodes]

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def schema(text: str) -> dict[str, Any]:
    """Return a tool with the same text in each of its fields."""
    properties = {f"p{text}": {"type": "string", "description": text, "enum": [text]}}
    parameters = {"type": "object", "properties": properties, "title": text}
    function = {"name": f"n{text}", "description": text, "parameters": parameters}
    return {"type": "function", "function": function}


def drawn(data: Any, chat: Any) -> Any:
    return filled(
        chat,
        lambda: data.draw(texts),
        lambda: json.dumps({data.draw(texts): data.draw(texts)}, ensure_ascii=False),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODING_FORMATS)
@quick
@given(data=st.data())
def test_control_tokens_depend_on_the_structure_only(name: str, data: Any) -> None:
    encoding = encoding_for(name)
    chat = data.draw(structures(name))
    has_tools = get_chat_format(name).tools and data.draw(st.booleans())
    special = frozenset(encoding.special_tokens.values())

    def controls(messages: Any, text: str) -> list[int]:
        tools = [schema(text)] if has_tools else None
        found = encode_chat(
            messages, encoding=encoding, format=name, tools=tools, disallowed_special=()
        )
        return [token for token in found.ids if token in special]

    plain = filled(chat, lambda: "x", lambda: "{}")
    assert controls(drawn(data, chat), data.draw(texts)) == controls(plain, "x")


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODING_FORMATS)
@quick
@given(data=st.data())
def test_counts_equal_the_number_of_ids_and_add_up(name: str, data: Any) -> None:
    encoding = encoding_for(name)
    messages = drawn(data, data.draw(structures(name)))
    tools = [schema(data.draw(texts))] if get_chat_format(name).tools else None
    options = ChatOptions(add_generation_prompt=data.draw(st.booleans()))
    given_chat: Any = {"encoding": encoding, "format": name, "tools": tools, "options": options}
    encoded = encode_chat(messages, **given_chat, disallowed_special=())
    counted = count_chat(messages, **given_chat)
    assert counted.count == len(encoded.ids)
    assert counted.accuracy == "exact"
    parts = (*counted.message_counts, counted.tools_count, counted.frame_count)
    assert sum(parts) == counted.count
    sizes = tuple(end - start for start, end in encoded.message_spans)
    assert len(counted.message_counts) == len(messages) == len(sizes)
    if tools is None and {"user", "assistant", "tool"}.issuperset(m["role"] for m in messages):
        assert sizes == counted.message_counts
    else:  # some formats write a system text or the tools inside another message
        assert all(size >= own for size, own in zip(sizes, counted.message_counts, strict=True))
    # The segments give the ids, and decode to the plain rendering.
    ids: list[int] = []
    for segment in encoded.segments:
        if isinstance(segment, Control):
            ids.append(encoding.special_tokens[segment.name])
        else:
            ids += encoding.encode_ordinary(segment)
    assert ids == encoded.ids
    text = "".join(s.name if isinstance(s, Control) else s for s in encoded.segments)
    assert encoding.decode(encoded.ids) == text
    limit = data.draw(st.integers(0, counted.count + 2))
    limited = count_chat(messages, **given_chat, limit=limit)
    assert limited.limit_exceeded == (counted.count > limit)
    assert limited.count == min(counted.count, limit + 1)
    if limited.limit_exceeded:
        parted = (limited.message_counts, limited.tools_count, limited.frame_count)
        assert parted == ((), 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_chat_formats())
@quick
@given(data=st.data())
def test_count_texts_agrees_with_count_chat(name: str, data: Any) -> None:
    encoding, chosen = encoding_for(name), get_chat_format(name)
    roles = st.sampled_from(["user", "assistant", *chosen.roles, "nobody", ""])
    pairs = data.draw(st.lists(st.tuples(roles, st.none() | texts), max_size=4))
    utf8 = [(role, None if text is None else text.encode()) for role, text in pairs]
    found = count_texts(utf8, encoding=encoding, chosen=chosen)
    messages = [{"role": role, "content": text} for role, text in pairs]
    try:
        expected = count_chat(messages, encoding=encoding, format=name)
    except InvalidChat:
        assert found is None
        return
    assert found in (None, expected)
    if name in ("openai-chat", "llama3") and expected.accuracy == "exact":
        assert found == expected
    layout = chosen.layout(read_chat(encoding, name, messages, None, ChatOptions())[1], encoding)
    assert expected.count == sum(
        encoding.count(piece) if isinstance(piece, str) else piece if isinstance(piece, int) else 1
        for piece in layout.pieces
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODING_FORMATS)
@quick
@given(data=st.data())
def test_a_stored_transcript_is_a_prefix_of_its_prompt(name: str, data: Any) -> None:
    messages = drawn(data, data.draw(structures(name)))
    given_chat: Any = {"encoding": encoding_for(name), "format": name, "disallowed_special": ()}
    prompt = encode_chat(messages, **given_chat).ids
    stored = encode_chat(
        messages, **given_chat, options=ChatOptions(add_generation_prompt=False)
    ).ids
    assert prompt[: len(stored)] == stored


@pytest.mark.slow
@pytest.mark.parametrize("name", list_chat_formats())
@quick
@given(data=st.data())
def test_tokens_that_the_caller_counted_are_added_or_rejected(name: str, data: Any) -> None:
    messages = filled(data.draw(structures(name)), lambda: "x", lambda: "{}")
    index = data.draw(st.integers(0, len(messages) - 1))
    content = messages[index].get("content") or "x"
    texts_of_message = [content] if isinstance(content, str) else content
    first = data.draw(st.booleans())
    given_chat: Any = {
        "encoding": encoding_for(name),
        "format": name,
        "tools": [schema("x")]
        if get_chat_format(name).tools and data.draw(st.booleans())
        else None,
        "options": ChatOptions(add_generation_prompt=data.draw(st.booleans())),
    }

    def chat(*counted: int) -> Any:
        parts: Any = [{"type": "counted_tokens", "tokens": n} for n in counted]
        parts = [*parts, *texts_of_message] if first else [*texts_of_message, *parts]
        return [*messages[:index], {**messages[index], "content": parts}, *messages[index + 1 :]]

    try:
        plain, one, more = (count_chat(chat(*n), **given_chat) for n in ((), (1,), (86,)))
    except InvalidChat as error:
        if error.index != index or error.rule not in REJECTED:
            raise
        if "as counted_tokens" in error.advice:  # it was sent so
            raise
        return
    if plain.message_counts[index] == 0:  # the format drops the message
        assert plain.count == more.count
        return
    # Text ends at a part, so a single text may become two.
    assert plain.count < one.count <= plain.count + 2
    assert more.count == one.count + 85
    assert more.message_counts[index] == one.message_counts[index] + 85
    assert more.accuracy == "estimate"
    if get_chat_format(name).encodes:
        with pytest.raises(InvalidChat, match="part_not_supported"):
            encode_chat(chat(1), **given_chat)


def odd(value: Any) -> Any:
    """Return a value of a message with `Odd` instead of `str`."""
    if isinstance(value, str):
        return Odd(value)
    if isinstance(value, dict):
        return {Odd(key): odd(item) for key, item in value.items()}
    if isinstance(value, Message | ToolCall):
        return type(value)(*map(odd, value))
    return type(value)(map(odd, value)) if type(value) in (list, tuple) else value


@pytest.mark.slow
@pytest.mark.parametrize("name", list_chat_formats())
@quick
@given(data=st.data())
def test_texts_may_be_of_a_subclass_of_str(name: str, data: Any) -> None:
    messages = drawn(data, data.draw(structures(name)))
    tools = [schema(data.draw(texts))] if get_chat_format(name).tools else None
    given_chat: Any = {"encoding": encoding_for(name), "format": name, "disallowed_special": ()}
    run: Any = encode_chat if get_chat_format(name).encodes else count_chat
    expected = run(messages, tools=tools, **given_chat)
    assert run(odd(messages), tools=odd(tools), **given_chat) == expected
    parsed = read_messages(messages)
    assert repr(read_messages(odd(parsed))) == repr(parsed)


@pytest.mark.slow
def test_runs_are_one_text_and_pieces_are_not() -> None:
    chat = [{"role": "user", "content": "\nhi"}]
    joined = encode_chat(chat, encoding=encoding_for("chatml"), format="chatml")
    pieces = encode_chat(chat, encoding=encoding_for("llama3"), format="llama3")
    assert "user\n\nhi" in joined.segments
    assert pieces.segments[4:6] == ["\n\n", "\nhi"]
