"""Helpers for tests of the playground, in addition to Playwright's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Opens a page: `open_page(server, "#…", viewport=…)`.
OpenPage = Callable[..., "Page"]
#: For a busy machine.
WAIT_SECONDS = 60.0
AXE = Path(__file__).resolve().parents[2] / "build/page/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: The id is the last part of each label.
_IDS = "(all) => all.map((each) => Number(/id (\\d+)/.exec(each.ariaLabel)[1]))"
_TEXTS = "(all) => all.map((each) => each.textContent)"


def ids(page: Page, view: str = "#tokens-view") -> list[int]:
    """Return the ids of the tokens drawn in a view."""
    found: list[int] = page.locator(f"{view} .t").evaluate_all(_IDS)
    return found


def texts(page: Page, view: str = "#tokens-view") -> list[str]:
    """Return the texts of the tokens drawn in a view."""
    found: list[str] = page.locator(f"{view} .t").evaluate_all(_TEXTS)
    return found


def becomes(page: Page, read: Callable[[], object], expected: object) -> None:
    """Wait until a value read from a page is the expected one.

    Raises:
        AssertionError: The value is another after WAIT_SECONDS.
    """
    until = monotonic() + WAIT_SECONDS
    while (found := read()) != expected:
        assert monotonic() < until, f"{found!r} is not {expected!r}"
        page.wait_for_timeout(20)


def violations(page: Page) -> list[Any]:
    """Return the findings of axe-core: each rule with its elements."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("(rules) => axe.run({runOnly: rules})", RULES)
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]


def enter(page: Page, text: str) -> None:
    """Set the text of the field. Typing a long text over Chromium's protocol takes minutes."""
    page.locator("#text").evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", text
    )
