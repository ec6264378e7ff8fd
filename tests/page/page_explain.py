"""The page of `bytepair explain` fits a phone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXT = "Pneumonoultramicroscopicsilicovolcanoconiosis 1234567 \U0001f984\u65e5\u672c " + "x" * 300


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "explained.html"
    program = [str(Path(sys.executable).with_name("bytepair")), "explain", TEXT]
    subprocess.run([*program, "--encoding", "gpt-4o", "--html", file], check=True)
    page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
    page.goto(file.as_uri())
    links = page.locator(".text a")
    for number in range(0, links.count(), 7):
        links.nth(number).click()
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= width
    # The columns that matter are seen without scrolling.
    token = page.locator("td:nth-child(5)").first.bounding_box()
    assert token is not None
    assert token["x"] + token["width"] <= width
    page.context.close()
