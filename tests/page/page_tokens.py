"""The tab Tokens: typed text as tokens."""

from __future__ import annotations

import unicodedata

import pytest
from bytepair_engine import get_encoding
from playwright.sync_api import Page, expect
from support.browsing import OpenPage, becomes, enter, ids, texts
from support.serving import RunningServer

ENCODING = get_encoding("o200k_base")
END_OF_TEXT = ENCODING.special_tokens["<|endoftext|>"]


@pytest.fixture
def page(site: RunningServer, open_page: OpenPage) -> Page:
    """The page in its initial state."""
    return open_page(site)


def test_tokens_follow_the_typed_text(page: Page) -> None:
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(page.input_value("#text")))
    page.locator("#text").fill("")
    expect(page.locator("#tokens-status")).to_contain_text("0 tokens")
    page.locator("#text").press_sequentially("Hello, naïve wörld")
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary("Hello, naïve wörld"))
    count = len(ENCODING.encode_ordinary("Hello, naïve wörld"))
    status = page.locator("#tokens-status")
    expect(status).to_contain_text(f"{count} tokens · 18 characters · 20 bytes · 3 words")
    expect(status).to_contain_text(f"{count / 3:.2f} tokens per word")


def test_another_encoding_gives_other_tokens(page: Page) -> None:
    text = "12345 naïve 🤖\n\tx"
    page.locator("#text").fill(text)
    for encoding in ("r50k_base", "cl100k_base"):
        page.locator("#encoding").select_option(encoding)
        becomes(page, lambda: ids(page), get_encoding(encoding).encode_ordinary(text))


def test_every_character_is_visible(page: Page) -> None:
    for text, shown in (
        ("a b\tc\nd", ["·", "⇥", "↵"]),
        ("a\u00a0b", ["U+00A0"]),
        ("x\u202ey\u2066z", ["U+202E", "U+2066"]),
        ("a\u200bb\ufeff", ["U+200B", "U+FEFF"]),
        ("\x00\x1b[31m\x7f", ["U+0000", "U+001B", "U+007F"]),
        ("a\U000e0041", ["U+E0041"]),
        ("שלום \u0301", ["·"]),
    ):
        page.locator("#text").fill(text)
        becomes(page, lambda: ids(page), ENCODING.encode_ordinary(text))
        assert page.locator("#tokens-view i").all_text_contents() == shown
        drawn = page.locator("#tokens-view .tokens").evaluate("(view) => view.textContent")
        hidden = {each for each in drawn if unicodedata.category(each)[0] in "CZ"}
        assert hidden <= {"\n", " "}  # between the bytes of one token


def test_a_character_of_several_tokens_is_shown_as_shared(page: Page) -> None:
    page.locator("#text").fill("\U0001f98a")
    expected = ENCODING.encode_ordinary("\U0001f98a")
    assert len(expected) > 1
    becomes(page, lambda: ids(page), expected)
    expect(page.locator(".shared")).to_have_count(1)
    expect(page.locator(".shared")).to_contain_text("\U0001f98a")
    assert bytes.fromhex(" ".join(texts(page))) == "\U0001f98a".encode()
    page.locator("#tokens-view .t").last.hover()
    expect(page.locator("#tokens-detail")).to_contain_text(f"by {len(expected)} tokens")


def test_a_token_is_described_under_the_pointer(page: Page) -> None:
    page.locator("#text").fill("Hello wörld")
    expected = ENCODING.encode_ordinary("Hello wörld")
    becomes(page, lambda: ids(page), expected)
    page.locator("#tokens-view .t").nth(1).hover()
    detail = page.locator("#tokens-detail")
    expect(detail).to_contain_text(f"2 of {len(expected)}")
    expect(detail).to_contain_text(str(expected[1]))
    token = ENCODING.decode_single_token_bytes(expected[1])
    expect(detail).to_contain_text(token.hex(" ").upper())
    expect(detail).to_contain_text(f"rank{expected[1]}")


def test_special_tokens_are_text_unless_they_are_requested_and_permitted(page: Page) -> None:
    text = "a<|endoftext|>b"
    page.locator("#text").fill(text)
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(text))
    expect(page.locator("#tokens-note")).to_have_text(
        "1 spelling of special tokens is ordinary text."
    )
    page.locator("#special").select_option("control")
    becomes(page, lambda: ids(page), ENCODING.encode(text, allowed_special="all"))
    expect(page.locator(".t.special")).to_have_text("<|endoftext|>")
    expect(page.locator("#tokens-note")).to_have_text("1 control token.")
    page.locator("#encoding").select_option("cl100k_base")  # none is permitted
    becomes(page, lambda: ids(page), get_encoding("cl100k_base").encode_ordinary(text))
    page.locator("#special").select_option("reject")
    expect(page.locator("#tokens-status")).to_contain_text("SPECIAL_TOKEN_IN_TEXT")


def test_ids_are_decoded(page: Page) -> None:
    page.locator("#mode").select_option("ids")
    some = [*ENCODING.encode_ordinary("naïve 🤖"), END_OF_TEXT]
    page.locator("#ids").fill(str(some))
    becomes(page, lambda: ids(page), some)
    expect(page.locator(".t.special")).to_have_text("<|endoftext|>")
    page.locator("#ids").fill(f"{some[0]},{ENCODING.n_vocab + 7}\n")
    becomes(page, lambda: ids(page), [some[0], ENCODING.n_vocab + 7])
    expect(page.locator(".t.unknown")).to_have_count(1)
    page.locator("#ids").fill("1 2 three")
    expect(page.locator("#tokens-status")).to_have_text("Entry 3 is not a token id.")


def test_a_long_text_is_drawn_only_in_the_viewport(page: Page) -> None:
    lines = [f"Line {i} of a text, naïve and long enough to be drawn late.\n" for i in range(4000)]
    text = "".join(lines)
    assert len(text) > 200_000
    expected = ENCODING.encode_ordinary(text)
    enter(page, text)
    expect(page.locator("#tokens-status")).to_contain_text(f"{len(expected):,} tokens")
    assert page.locator("#tokens-view .t").count() < 5000
    page.locator("#tokens-view .tokens").focus()
    page.keyboard.press("End")
    expect(page.locator("#tokens-detail")).to_contain_text(f"{len(expected):,} of")
    expect(page.locator("[aria-selected=true][role=option]")).to_be_in_viewport()
    page.locator("#text").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("!")
    expect(page.locator("#tokens-status")).to_contain_text(
        f"{len(ENCODING.encode_ordinary(text + '!')):,} tokens"
    )


def test_a_long_line_is_drawn_in_parts(page: Page) -> None:
    text = "word " * 40_000
    enter(page, text)
    count = len(ENCODING.encode_ordinary(text))
    expect(page.locator("#tokens-status")).to_contain_text(f"{count:,} tokens")
    assert page.locator("#tokens-view .t").count() < 5000


def test_tokens_can_be_chosen_by_keyboard(page: Page) -> None:
    page.locator("#text").fill("one two three four")
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary("one two three four"))
    page.locator("#tokens-view .tokens").focus()
    chosen = page.locator("#tokens-view [aria-selected=true]")
    expect(chosen).to_have_text("one")
    for key, shown in (
        ("ArrowRight", "·two"),
        ("ArrowDown", "·three"),
        ("End", "·four"),
        ("ArrowRight", "·four"),
        ("ArrowLeft", "·three"),
        ("Home", "one"),
    ):
        page.keyboard.press(key)
        expect(chosen).to_have_text(shown)
    described = page.locator("#tokens-view .tokens").get_attribute("aria-activedescendant")
    assert described == chosen.get_attribute("id")
