"""The page of `bytepair explain`, which the playground's modules draw, without a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bytepair_engine import get_encoding
from playwright.sync_api import expect
from support.browsing import ids, texts, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ENCODING = get_encoding("gpt-4o")
LONG = "Pneumonoultramicroscopicsilicovolcanoconiosis 1234567 \U0001f984\u65e5\u672c " + "x" * 300
HOSTILE = (
    "\x1b[31m \u202eabc\u2066 \u200b <script>alert(1)</script> </script><!-- "
    "<img src=x onerror=alert(1)> <|endoftext|> \u65e5\U0001f984"
)


def opened(browser: Browser, folder: Path, text: str, *arguments: str, width: int = 1280) -> Page:
    """The page of a text, whose errors fail the test."""
    file = folder / "explained.html"
    program = [str(Path(sys.executable).with_name("bytepair")), "explain", text, *arguments]
    subprocess.run([*program, "--encoding", "gpt-4o", "--html", file], check=True)
    page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append("dialog"))
    page.on("request", lambda request: faults.append(request.url))
    page.goto(file.as_uri())
    expect(page.locator("h1")).not_to_be_empty()
    assert faults == [file.as_uri()]
    return page


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_element_is_wider_than_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    page = opened(browser, tmp_path, LONG, width=width)
    tokens = page.locator("#view .t")
    for number in range(0, tokens.count(), 7):
        tokens.nth(number).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_any_text_is_shown_and_none_acts(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, HOSTILE)
    expected = ENCODING.encode_ordinary(HOSTILE)
    assert ids(page, "#view") == expected
    assert "U+200B" in "".join(texts(page, "#view"))
    expect(page.locator(".shared").last).to_contain_text("\U0001f984")
    expect(page.locator("#findings-list b").first).to_have_text("CONTROL_CHARACTER")
    assert violations(page) == []
    page.context.close()


def test_a_token_can_be_chosen_and_is_explained(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, "Hello tokens", "--token", "1")
    chosen = ENCODING.encode("Hello tokens")[1]
    expect(page.locator("#tree-status")).to_contain_text(f"Token {chosen} is made of")
    expect(page.locator("#detail")).to_contain_text(f"rank{chosen}")
    page.locator("#view .tokens").focus()
    page.keyboard.press("Home")
    expect(page.locator(".tree b").first).to_have_text("Hello")
    page.context.close()
