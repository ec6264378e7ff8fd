"""Helpers for tests of the playground, beside those of Playwright."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Opens a page: `open_page(server, "#…", viewport=…)`.
OpenPage = Callable[..., "Page"]
WAIT_SECONDS = 20.0
AXE = Path(__file__).resolve().parents[2] / "build/page/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Each label ends with the id.
_IDS = "(all) => all.map((each) => Number(/id (\\d+)/.exec(each.ariaLabel)[1]))"
_TEXTS = "(all) => all.map((each) => each.textContent)"


def ids(page: Page, view: str = "#tokens-view") -> list[int]:
    """The ids of the tokens that are drawn in a view."""
    found: list[int] = page.locator(f"{view} .t").evaluate_all(_IDS)
    return found


def texts(page: Page, view: str = "#tokens-view") -> list[str]:
    """What is shown for them."""
    found: list[str] = page.locator(f"{view} .t").evaluate_all(_TEXTS)
    return found


def becomes(page: Page, read: Callable[[], object], expected: object) -> None:
    """Wait until what is read from a page is as expected.

    Raises:
        AssertionError: It is not in time.
    """
    until = monotonic() + WAIT_SECONDS
    while (found := read()) != expected:
        assert monotonic() < until, f"{found!r} is not {expected!r}"
        page.wait_for_timeout(20)


def violations(page: Page) -> list[Any]:
    """What axe-core finds: the rule, and the elements."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("(rules) => axe.run({runOnly: rules})", RULES)
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]


def enter(page: Page, text: str) -> None:
    """Put a long text into the field. Chromium takes minutes where it is typed by its protocol."""
    page.locator("#text").evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", text
    )
