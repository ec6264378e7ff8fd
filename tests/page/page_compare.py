"""The tab Compare: one text in several encodings."""

from __future__ import annotations

from functools import partial

from bytepair_engine import get_encoding
from playwright.sync_api import expect
from support.browsing import OpenPage, becomes, ids
from support.serving import RunningServer

TEXT = "Tokens of naïve numbers: 123456789\n"


def spans(name: str) -> set[tuple[int, int]]:
    """Return the byte ranges of an encoding's tokens in TEXT."""
    encoding = get_encoding(name)
    found, start = set(), 0
    for token in encoding.encode_ordinary(TEXT):
        end = start + len(encoding.decode_single_token_bytes(token))
        found.add((start, end))
        start = end
    return found


def test_encodings_are_compared(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    page.locator("#text").fill(TEXT)
    page.get_by_role("tab", name="Compare").click()
    names = ["o200k_base", "cl100k_base"]

    def shows(names: list[str]) -> None:
        for i, name in enumerate(names, 1):
            view = f"#compare-views section:nth-of-type({i})"
            expected = get_encoding(name).encode_ordinary(TEXT)
            becomes(page, partial(ids, page, view), expected)
            title = page.locator(f"{view} h2")
            expect(title).to_contain_text(f"{name}: {len(expected)} tokens")
            common = set.intersection(*map(spans, names))
            expect(page.locator(f"{view} .differs")).to_have_count(len(spans(name) - common))

    shows(names)
    page.get_by_role("button", name="Add").click()
    page.get_by_role("combobox", name="Encoding 3").select_option("r50k_base")
    shows([*names, "r50k_base"])
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("button", name="Add")).to_be_disabled()
    expect(page.get_by_role("button", name="Remove the last")).to_be_focused()
    page.get_by_role("button", name="Remove the last").click()
    page.get_by_role("button", name="Remove the last").click()
    expect(page.get_by_role("button", name="Remove the last")).to_be_disabled()
    expect(page.get_by_role("button", name="Add")).to_be_focused()
    shows(names)
