"""Write the pictures of the playground that README and docs show: `make pictures`.

Needs fonts with emoji and Chinese: apt-get install fonts-noto-color-emoji fonts-wqy-microhei.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from support.serving import RunningServer

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE: Any = {"width": 960, "height": 600}
#: Size of the palette. With one, a page of few colours is a third as large.
COLOURS = 64


def write(page: Page, name: str) -> None:
    """Write the visible part of the page."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS).save(FOLDER / f"{name}.png", optimize=True)


def main() -> int:
    path = shutil.which("chromium") or sys.exit("needs chromium: scripts/install-chromium")
    with RunningServer() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(f"http://{server.target}/")
        page.locator("#tokens-view .t").nth(21).click()
        write(page, "playground")
        page.get_by_role("tab", name="Compare").click()
        page.locator("#compare-views .t").first.wait_for()
        write(page, "playground-compare")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
