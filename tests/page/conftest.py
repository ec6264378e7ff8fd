"""A real browser, a real server, and pages whose errors fail the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.browsing import WAIT_SECONDS, OpenPage
from support.serving import RunningServer, write_config

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
CEILING = """
[ceiling.default]
o200k_base = "ALL"
o200k_harmony = "ALL"
formats = ["harmony"]
"""
#: The browser's log line for a failed call, which the page shows itself.
EXPECTED = "Failed to load resource"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, from the variable CHROMIUM or by one of its usual names."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail("Chromium is not installed: see `make test-page`")
    # Imported here, because pytest reads this file in other runs too, which need no Playwright.
    from playwright.sync_api import expect, sync_playwright

    # Chromium's sandbox does not work for root, and /dev/shm of containers is small.
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    expect.set_options(timeout=WAIT_SECONDS * 1000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=flags)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with all built-in encodings that permits control tokens of o200k_base and chats of
    harmony."""
    config = write_config(tmp_path_factory.mktemp("site"), CEILING)
    with RunningServer("--config", config) as running:
        yield running


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open a page of a server: `open_page(server, "#…", viewport=…)`.

    The test fails if the page had an error of a script, a violation of its policy, a dialog, or a
    request to another host.
    """
    faults: list[str] = []
    contexts = []

    def opened(
        server: RunningServer, fragment: str = "", *, scheme: str = "http", **options: Any
    ) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)
        origin = f"{scheme}://{server.target}/"

        def requested(url: str) -> None:
            if not url.startswith((origin, "data:", "blob:")):
                faults.append(f"request to {url}")

        def logged(kind: str, text: str) -> None:
            if kind in ("error", "warning") and not text.startswith(EXPECTED):
                faults.append(f"console: {text}")

        def dismiss(dialog: Dialog) -> None:
            faults.append("dialog")
            dialog.dismiss()

        page.on("request", lambda request: requested(request.url))
        page.on("console", lambda message: logged(message.type, message.text))
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on("dialog", dismiss)
        page.goto(origin + fragment)
        page.locator("[role=status]:not(:empty)").first.wait_for(state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
