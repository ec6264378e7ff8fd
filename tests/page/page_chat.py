"""The tab Chat: counts of messages, fitting, and the tokens."""

from __future__ import annotations

import json

import pytest
from bytepair.v1 import chat_pb2, chat_pb2_grpc
from bytepair_engine import get_encoding
from playwright.sync_api import Page, expect
from support.browsing import OpenPage, becomes, ids
from support.serving import RunningServer

SYSTEM, QUESTION = "You are a helpful assistant.", "What is a token?"
TOOL = {"name": "look", "description": "Look it up.", "parameters": {"type": "object"}}


@pytest.fixture
def page(site: RunningServer, open_page: OpenPage) -> Page:
    """The tab, with its initial messages."""
    page = open_page(site)
    page.get_by_role("tab", name="Chat").click()
    return page


def count(
    site: RunningServer, *messages: tuple[str, str], tools: tuple[str, ...] = ()
) -> chat_pb2.CountChatResponse:
    """Return the answer of gRPC for a chat of openai-chat."""
    stub = chat_pb2_grpc.ChatServiceStub(site.channel)  # type: ignore[no-untyped-call]
    request = chat_pb2.CountChatRequest(encoding="o200k_base", format="openai-chat")
    for role, text in messages:
        request.messages.add(role=role).content.add(text=text)
    for tool in tools:
        request.tools.add(json=tool)
    answer: chat_pb2.CountChatResponse = stub.CountChat(request)
    return answer


def test_each_message_has_its_count(site: RunningServer, page: Page) -> None:
    page.locator("#chat-format").select_option("openai-chat")
    shown = page.locator("#chat-messages .count")
    answer = count(site, ("system", SYSTEM), ("user", QUESTION))
    expect(shown).to_have_text([f"{each} tokens" for each in answer.message_counts])
    expect(page.locator("#chat-status")).to_contain_text(f"{answer.count} tokens EXACT")
    page.get_by_role("button", name="Add a message").click()
    page.keyboard.type("Text in pieces.")
    answer = count(site, ("system", SYSTEM), ("user", QUESTION), ("assistant", "Text in pieces."))
    expect(shown).to_have_text([f"{each} tokens" for each in answer.message_counts])
    page.get_by_role("button", name="Move up message 3").click()
    expect(page.get_by_label("Text of message 2")).to_have_value("Text in pieces.")
    expect(page.get_by_label("Text of message 2")).to_be_focused()
    page.get_by_role("button", name="Remove message 2").click()
    answer = count(site, ("system", SYSTEM), ("user", QUESTION))
    expect(page.locator("#chat-status")).to_contain_text(f"{answer.count} tokens EXACT")


def test_tools_are_counted(site: RunningServer, page: Page) -> None:
    page.locator("#chat-format").select_option("openai-chat")
    page.get_by_text("Tools", exact=True).click()
    page.locator("#chat-tools").fill("[{")
    expect(page.locator("#chat-status")).to_have_text("The tools are not JSON.")
    page.locator("#chat-tools").fill(json.dumps([TOOL]))
    answer = count(site, ("system", SYSTEM), ("user", QUESTION), tools=(json.dumps(TOOL),))
    assert answer.tools_count
    expect(page.locator("#chat-status")).to_contain_text(f"{answer.count} tokens")
    expect(page.locator("#chat-status")).to_contain_text(f"tools {answer.tools_count}")


def test_messages_that_fit_are_marked(page: Page) -> None:
    page.locator("#chat-format").select_option("openai-chat")
    page.get_by_role("button", name="Add a message").click()
    page.keyboard.type("A long answer, which is not kept. " * 5)
    page.get_by_role("button", name="Add a message").click()
    page.keyboard.type("And now?")
    page.locator("#chat-window").fill("60")
    page.locator("#chat-reserve").fill("20")
    expect(page.locator("#fit-status")).to_contain_text("FitChat keeps 2 messages")
    expect(page.locator("#chat-messages li.kept textarea")).to_have_count(2)
    expect(page.locator("#chat-messages li.dropped textarea")).to_have_count(2)
    page.locator("#chat-window").fill("3")
    expect(page.locator("#fit-status")).to_contain_text("BUDGET_TOO_SMALL")
    expect(page.locator("#chat-messages li.dropped")).to_have_count(0)


def test_control_tokens_have_a_distinct_colour(site: RunningServer, page: Page) -> None:
    page.locator("#chat-encoding").select_option("o200k_harmony")
    page.locator("#chat-format").select_option("harmony")
    page.get_by_label("Text of message 2").fill("Say <|end|>")
    stub = chat_pb2_grpc.ChatServiceStub(site.channel)  # type: ignore[no-untyped-call]
    request = chat_pb2.EncodeChatRequest(
        encoding="o200k_harmony", format="harmony", disallowed_special="DISALLOWED_SPECIAL_AS_TEXT"
    )
    for role, text in (("system", SYSTEM), ("user", "Say <|end|>")):
        request.messages.add(role=role).content.add(text=text)
    expected = list(stub.EncodeChat(request).ids)
    becomes(page, lambda: ids(page, "#chat-view"), expected)
    special = set(get_encoding("o200k_harmony").special_tokens.values())
    controls = sum(each in special for each in expected)
    expect(page.locator("#chat-view .t.special")).to_have_count(controls)


def test_a_format_beyond_the_ceiling_is_an_error(page: Page) -> None:
    page.locator("#chat-encoding").select_option("cl100k_base")
    names = page.locator("#chat-format option").all_inner_texts()
    assert "openai-chat" in names
    page.locator("#chat-format").select_option("openai-chat")
    expect(page.locator("#chat-tokens-status")).to_contain_text("counts only")
