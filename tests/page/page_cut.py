"""The tabs Cut and Findings: the results of Truncate, Split and Inspect."""

from __future__ import annotations

from itertools import pairwise

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.context.inspecting import inspect
from bytepair_engine.context.truncating import truncated
from playwright.sync_api import Page, expect
from support.browsing import OpenPage, becomes
from support.serving import RunningServer

ENCODING = get_encoding("o200k_base")
TEXT = "Text is cut, never torn: 🤖🦊 and naïve 你好.\n\nA second paragraph. It ends here.\n"


@pytest.fixture
def page(site: RunningServer, open_page: OpenPage) -> Page:
    """The tab Cut, with TEXT."""
    page = open_page(site)
    page.locator("#text").fill(TEXT)
    page.get_by_role("tab", name="Cut").click()
    return page


def drawn(page: Page, kind: str) -> list[str]:
    """Return the texts of the pieces of a kind."""
    texts: list[str] = page.locator(f"#cut-text > .{kind}").all_text_contents()
    return texts


def test_the_page_keeps_the_ranges_of_truncate(page: Page) -> None:
    for keep in ("start", "end", "both"):
        page.locator("#cut-keep").select_option(keep.upper())
        for tokens in (1, 5, 17):
            page.locator("#cut-tokens").fill(str(tokens))
            result = truncated(ENCODING, TEXT, tokens, keep=keep)
            expected = [TEXT[start:end] for start, end in result.kept]
            becomes(page, lambda: drawn(page, "kept"), expected)
            total = ENCODING.count(TEXT)
            said = f"{result.count} token{'' if result.count == 1 else 's'} of {total} are kept."
            expect(page.locator("#cut-status")).to_have_text(said)
    page.locator("#cut-marker").fill("[…]")
    result = truncated(ENCODING, TEXT, 17, keep="both", marker="[…]")
    becomes(page, lambda: drawn(page, "kept"), [TEXT[start:end] for start, end in result.kept])
    assert drawn(page, "marker") == ["[…]"]
    page.locator("#cut-tokens").fill("0")
    expect(page.locator("#cut-status")).to_contain_text("BUDGET_TOO_SMALL")


def test_the_slider_moves_the_cut(page: Page) -> None:
    expect(page.locator("#cut-status")).to_contain_text("are kept")
    expect(page.locator("#cut-slider")).to_have_attribute("max", str(ENCODING.count(TEXT)))
    page.locator("#cut-tokens").fill("9")
    page.locator("#cut-slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#cut-tokens")).to_have_value("10")
    becomes(page, lambda: "".join(drawn(page, "kept")), ENCODING.truncate(TEXT, 10))
    page.keyboard.press("End")
    expect(page.locator("#cut-status")).to_contain_text("All of it fits")


def test_chunks_equal_those_of_split(page: Page) -> None:
    page.locator("#cut-how").select_option("split")
    for tokens, overlap, level in ((12, 0, ""), (12, 5, "WORD"), (6, 3, "CODE_POINT")):
        page.locator("#cut-tokens").fill(str(tokens))
        page.locator("#cut-overlap").fill(str(overlap))
        page.locator("#cut-level").select_option(level)
        chunks = ENCODING.split(
            TEXT,
            tokens,
            overlap_tokens=overlap,
            level=level.lower() or "paragraph",  # type: ignore[arg-type]
        )
        numbers = [str(number) for number in range(1, len(chunks) + 1)]
        becomes(page, lambda: drawn(page, "border"), numbers)
        expect(page.locator("#cut-status")).to_contain_text(f"{len(chunks)} chunks of ")
        shared = "".join(TEXT[after.start : before.end] for before, after in pairwise(chunks))
        becomes(page, lambda: "".join(drawn(page, "overlap")), shared)
        pieces = page.locator("#cut-text > .chunk, #cut-text > .overlap").all_text_contents()
        assert "".join(pieces) == TEXT


def test_findings_equal_those_of_inspect(page: Page) -> None:
    text = "wo\u200brld cafe\u0301 <|endoftext|> <|ENDOFTEXT|> \u202etxt.exe \ufffd end  "
    page.locator("#text").fill(text)
    page.get_by_role("tab", name="Findings").click()
    found = inspect(ENCODING, text)
    entries = page.locator("#findings-list button")
    expected = [finding.code.name for finding in found.findings]
    becomes(page, lambda: page.locator("#findings-list b").all_text_contents(), expected)
    status = page.locator("#findings-status")
    expect(status).to_contain_text(f"{len(expected)} findings in {found.count} tokens")
    expect(status).to_contain_text(f"the first {found.stable_tokens} tokens stay")
    explained = page.locator("#findings-list p").all_text_contents()
    assert all(explained)
    entries.nth(expected.index("SPECIAL_TOKEN_SPELLED")).focus()
    expect(page.locator("#findings-text .current")).to_have_text("<|endoftext|>")
    page.locator("#text").fill("Nothing to see.")
    expect(page.locator("#findings-list b")).to_have_count(
        len(inspect(ENCODING, "Nothing to see.").findings)
    )
