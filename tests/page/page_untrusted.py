"""Hostile text stays text in every place, and links are untrusted."""

from __future__ import annotations

import base64
import json
import sys
import unicodedata
import zlib
from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_server.playground.playground import files
from bytepair_tools.shared.visible import visible
from conftest import Serve
from playwright.sync_api import Page, expect
from support.browsing import OpenPage, becomes, ids
from support.serving import RunningServer, write_config

ENCODING = get_encoding("o200k_base")
HOSTILE = "\n".join(
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><svg onload=alert(1)><iframe src='javascript:alert(1)'></iframe>",
        "</textarea><a href=javascript:alert(1)>x</a>",
        "<|endoftext|><|im_start|>system\u202e\u2066txt.exe",
        "${alert(1)}{{constructor.constructor('alert(1)')()}}",
    ]
)
#: Elements that the page never contains, whatever is typed.
FOREIGN = "main script, main img, main svg, main iframe, main a, main style, [onerror], [onload]"


def fragment(state: Any) -> str:
    """Return the fragment of a link, as an attacker would make it."""
    packed = zlib.compress(json.dumps(state).encode(), wbits=-15)
    return "#" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def is_clean(page: Page) -> None:
    """Assert that no part of the text became an element."""
    expect(page.locator(FOREIGN)).to_have_count(0)


def test_text_stays_text(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    page.locator("#text").fill(HOSTILE)
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(HOSTILE))
    page.locator("#tokens-view .t").first.hover()
    is_clean(page)
    page.get_by_role("tab", name="Compare").click()
    view = "#compare-views section:nth-of-type(1)"
    becomes(page, lambda: ids(page, view), ENCODING.encode_ordinary(HOSTILE))
    is_clean(page)


def test_a_link_sets_only_text(site: RunningServer, open_page: OpenPage) -> None:
    text = HOSTILE
    chat = {"messages": [{"role": text, "name": text, "text": text}], "tools": text, "format": text}
    state = {"tab": "chat", "text": text, "encoding": text, "compare": [text] * 9, "chat": chat}
    page = open_page(site, fragment(state))
    expect(page.locator("#chat-messages textarea")).to_have_value(HOSTILE)
    is_clean(page)
    for tab in ("Compare", "Tokens", "Merges", "Cut", "Findings"):
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel")
        panel.locator(".t, .text > span").first.wait_for()
        is_clean(page)


@pytest.mark.parametrize(
    "state",
    [
        None,
        7,
        [],
        {"tab": "__proto__", "chat": 1, "compare": {}, "text": 5},
        {"tab": "constructor", "mode": "x", "special": "x", "compare": []},
        {"chat": {"messages": [None, 1, "x", {"role": {}}]}, "tab": "chat"},
        {"__proto__": {"tab": "chat"}, "text": ["a"]},
    ],
)
def test_a_link_with_values_of_other_types_opens_the_page(
    site: RunningServer, open_page: OpenPage, state: object
) -> None:
    page = open_page(site, fragment(state))
    page.get_by_role("tab", name="Tokens").click()
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(page.input_value("#text")))


def test_a_decompression_bomb_in_a_link_is_rejected(
    site: RunningServer, open_page: OpenPage
) -> None:
    packed = zlib.compress(b'{"text": "' + b"a" * 50_000_000 + b'"}', wbits=-15)
    page = open_page(site, "#" + base64.urlsafe_b64encode(packed).decode().rstrip("="))
    assert page.input_value("#text").startswith("Hello, world!")


def test_names_of_the_server_stay_text(serve: Serve, open_page: OpenPage, tmp_path: Any) -> None:
    """The special tokens of an operator's encoding can have arbitrary names."""
    config = """
        [encodings."<img src=x onerror=alert(1)>"]
        extends = "cl100k_base"
        special_tokens = { "<script>alert(2)</script>" = 200000 }
        [ceiling.default]
        "<img src=x onerror=alert(1)>" = "ALL"
    """
    server = serve("--config", write_config(tmp_path, config))
    page = open_page(server)
    page.locator("#encoding").select_option("<img src=x onerror=alert(1)>")
    page.locator("#special").select_option("control")
    page.locator("#text").fill("a<script>alert(2)</script>b")
    expect(page.locator(".t.special")).to_have_text("<script>alert(2)</script>")
    is_clean(page)


def test_characters_named_on_a_page_are_escaped_on_a_terminal(
    site: RunningServer, open_page: OpenPage
) -> None:
    """Pages name these characters, and terminals escape them. Unassigned ones differ by version."""
    page = open_page(site)
    module = next(file.path for file in files() if file.path.endswith("/visible.js"))
    named = page.evaluate(
        """async ([path, most]) => {
            const { spoken } = await import(path);
            const named = [];
            for (let code = 0; code < most; code++) {
                if (code >= 0xd800 && code < 0xe000) continue;
                const character = String.fromCodePoint(code);
                if (spoken(character) !== character) named.push(code);
            }
            return named;
        }""",
        [module, sys.maxunicode + 1],
    )
    escaped = {
        code
        for code in [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]
        if visible(chr(code)).startswith("\\") and chr(code) != "\\"
    }
    differing = {chr(code) for code in escaped.symmetric_difference(named)}
    assert {unicodedata.category(each) for each in differing} <= {"Cn"}
