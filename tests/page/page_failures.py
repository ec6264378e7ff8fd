"""Slow and failing calls, late answers, and a server that stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from bytepair_engine import get_encoding
from conftest import Serve
from playwright.sync_api import Page, Route, expect
from support.browsing import OpenPage, becomes, ids
from support.keys import keys_toml
from support.pki import Authority
from support.serving import RunningServer

ENCODING = get_encoding("o200k_base")
ENCODE = "**/bytepair.v1.TokenizerService/Encode"


def hold(page: Page, text: str) -> Callable[[], None]:
    """Hold calls with a text; the returned function releases them."""
    held: list[Route] = []

    def handle(route: Route) -> None:
        if json.loads(route.request.post_data or "{}").get("text") == text:
            held.append(route)
        else:
            route.continue_()

    page.route(ENCODE, handle)

    def release() -> None:
        for route in held:
            route.continue_()

    return release


def test_a_late_answer_never_replaces_a_newer_one(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    release = hold(page, "the first text")
    page.locator("#text").fill("the first text")
    expect(page.locator("#tokens-status.busy")).to_be_attached()
    page.locator("#text").fill("another")
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary("another"))
    release()
    page.wait_for_timeout(300)
    assert ids(page) == ENCODING.encode_ordinary("another")
    expect(page.locator("#tokens-status.busy")).not_to_be_attached()


def test_a_slow_call_is_indicated(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    release = hold(page, "slow")
    page.locator("#text").fill("slow")
    expect(page.locator("#tokens-status.busy")).to_be_attached()
    expect(page.locator("#tokens-view.stale")).to_be_attached()
    release()
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary("slow"))
    expect(page.locator(".busy, .stale")).to_have_count(0)


def test_a_text_over_the_limit_is_an_error_with_the_field(
    serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve("--max-input-bytes", "200"))
    page.locator("#text").fill("a " * 200)
    expect(page.locator("#tokens-status")).to_contain_text("INPUT_TOO_LARGE")
    page.locator("#text").fill("small")
    becomes(page, lambda: ids(page), get_encoding("cl100k_base").encode_ordinary("small"))
    expect(page.locator(".error")).to_have_count(0)


def test_only_the_visible_tab_retries(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    page.route(ENCODE, lambda route: route.abort())
    page.locator("#text").fill("x")
    expect(page.locator("#tokens-status")).to_contain_text("Trying again.")
    page.get_by_role("tab", name="Chat").click()
    expect(page.locator("#chat-status b")).to_be_visible()
    calls: list[str] = []
    page.on("request", lambda request: calls.append(request.url))
    page.wait_for_timeout(2500)
    assert calls == []


def test_the_page_recovers_after_a_restart_of_the_server(serve: Serve, open_page: OpenPage) -> None:
    server = serve()
    page = open_page(server)
    server.close()
    page.locator("#text").fill("while it is away")
    status = page.locator("#tokens-status")
    expect(status).to_contain_text("The server does not answer. Trying again.")
    expect(page.locator("#tokens-view.stale")).to_be_attached()
    serve("--grpc-address", server.target)
    expected = get_encoding("cl100k_base").encode_ordinary("while it is away")
    becomes(page, lambda: ids(page), expected)
    expect(page.locator(".error, .stale")).to_have_count(0)


def test_the_page_is_served_over_tls_and_http_2(
    serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    Authority().server().write(tmp_path)
    files = ("--tls-cert-file", str(tmp_path / "server.pem"))
    server = serve(*files, "--tls-key-file", str(tmp_path / "key.pem"))
    page = open_page(server, scheme="https", ignore_https_errors=True)
    page.locator("#tokens-view .t").first.wait_for()
    spoken = page.evaluate("performance.getEntries().map((each) => each.nextHopProtocol)")
    assert {each for each in spoken if each} == {"h2"}


def test_a_page_opened_during_the_start_waits(serve: Serve, open_page: OpenPage) -> None:
    server = serve()
    page = open_page(server)
    page.route("**/ListEncodings", lambda route: route.abort())
    page.reload()
    expect(page.locator("#tokens-status")).to_contain_text("Trying again.")
    page.unroute("**/ListEncodings")
    page.get_by_role("button", name="Now").click()
    page.locator("#tokens-view .t").first.wait_for()


def test_a_key_is_requested_and_kept_in_memory(
    serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    (keys := tmp_path / "keys.toml").write_text(keys_toml(me="secret-key"), encoding="utf-8")
    page = open_page(serve("--api-keys-file", str(keys), "--playground", "on"))
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#tokens-status")).to_contain_text("UNAUTHENTICATED")
    page.locator("#key").fill("secret-key")
    page.keyboard.press("Enter")
    page.locator("#tokens-view .t").first.wait_for()
    expect(page.locator("#key")).to_be_hidden()
    stored = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert "secret-key" not in stored
    page.get_by_role("button", name="Share").click()
    for form in ("link", "curl", "python", "json"):
        page.locator("#share-form").select_option(form)
        assert "secret-key" not in page.input_value("#share-text")
