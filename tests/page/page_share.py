"""Sharing: links that restore a page, and code that reproduces it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from bytepair_engine import get_encoding
from conftest import Serve
from playwright.sync_api import Page, expect
from support.browsing import OpenPage, becomes, ids
from support.keys import keys_toml
from support.pki import Authority
from support.serving import RunningServer

TEXT = 'It\'s "quoted" — $HOME `x` \\ 🤖\n\u202ebidi\x00 <|endoftext|>'
ENCODING = get_encoding("o200k_base")


def shared(page: Page, form: str) -> str:
    """Return the code that the dialog shows in a form."""
    page.get_by_role("button", name="Share").click()
    page.locator("#share-text").evaluate("(field) => (field.value = '')")
    page.locator("#share-form").select_option("json" if form != "json" else "link")
    page.locator("#share-form").select_option(form)
    start = {"link": "http", "python": "(from|import)", "curl": "curl", "json": "{"}[form]
    expect(page.locator("#share-text")).to_have_value(re.compile(f"^{start}"))
    text: str = page.locator("#share-text").input_value()
    page.keyboard.press("Escape")
    return text


@pytest.fixture
def page(site: RunningServer, open_page: OpenPage) -> Page:
    """The page with TEXT."""
    page = open_page(site)
    page.locator("#text").fill(TEXT)
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(TEXT))
    return page


def test_a_link_restores_the_page(site: RunningServer, open_page: OpenPage, page: Page) -> None:
    page.locator("#special").select_option("control")
    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("combobox", name="Encoding 2").select_option("r50k_base")
    link = shared(page, "link")
    other = open_page(site, "#" + link.partition("#")[2])
    assert other.input_value("#text") == TEXT
    assert other.input_value("#special") == "control"
    expect(other.get_by_role("tab", name="Compare")).to_have_attribute("aria-selected", "true")
    view = "#compare-views section:nth-of-type(2)"
    becomes(other, lambda: ids(other, view), get_encoding("r50k_base").encode_ordinary(TEXT))


@pytest.mark.parametrize(
    "fragment", ["#", "#!", "#AAAA", "#eyJ0YWIiOjF9", "#q1YqSVKyUjJU0lFKVrJSCgYA"]
)
def test_a_broken_link_opens_the_default_page(
    site: RunningServer, open_page: OpenPage, fragment: str
) -> None:
    page = open_page(site, fragment)
    becomes(page, lambda: ids(page), ENCODING.encode_ordinary(page.input_value("#text")))


def test_the_command_reproduces_the_page(page: Page) -> None:
    command = shared(page, "curl")
    assert "\u202e" not in command
    answered = subprocess.run(
        shlex.split(command, posix=True), capture_output=True, check=True, timeout=60
    )
    assert json.loads(answered.stdout)["ids"] == ENCODING.encode_ordinary(TEXT)


def test_the_command_of_every_tab_works(page: Page) -> None:
    for tab in ("Compare", "Merges", "Cut", "Findings", "Chat"):
        page.get_by_role("tab", name=tab).click()
        command = shlex.split(shared(page, "curl"))
        answered = subprocess.run(command, capture_output=True, check=True, timeout=60)
        assert "code" not in json.loads(answered.stdout), tab
    page.get_by_role("tab", name="Cut").click()
    page.locator("#cut-how").select_option("split")
    answered = subprocess.run(
        shlex.split(shared(page, "curl")), capture_output=True, check=True, timeout=60
    )
    assert json.loads(answered.stdout)["chunks"]


def test_the_python_code_reproduces_the_page(page: Page) -> None:
    code = shared(page, "python")
    assert "\u202e" not in code
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=60, text=True
    )
    assert json.loads(ran.stdout) == ENCODING.encode_ordinary(TEXT)


def test_the_python_code_of_a_chat_counts_it(page: Page) -> None:
    page.get_by_role("tab", name="Chat").click()
    page.get_by_label("Text of message 1").fill(TEXT)
    expect(page.locator("#chat-status b")).to_have_text(re.compile(r"\d+ tokens"))
    ran = subprocess.run(
        [sys.executable, "-c", shared(page, "python")], capture_output=True, check=True, timeout=60
    )
    expect(page.locator("#chat-status b")).to_have_text(f"{ran.stdout.decode().strip()} tokens")


@pytest.mark.parametrize(
    ("tab", "how", "shown"),
    [("Cut", "truncate", ""), ("Cut", "split", "[Chunk("), ("Findings", "", "Inspection(")],
)
def test_the_python_code_of_other_tabs_works(page: Page, tab: str, how: str, shown: str) -> None:
    page.get_by_role("tab", name=tab).click()
    if how:
        page.locator("#cut-how").select_option(how)
    ran = subprocess.run(
        [sys.executable, "-c", shared(page, "python")], capture_output=True, check=True, timeout=60
    )
    assert shown in ran.stdout.decode()


def test_the_python_code_of_a_cut_treats_special_tokens_as_the_page_does(page: Page) -> None:
    page.locator("#text").fill("<|endoftext|> a b c")
    page.get_by_role("tab", name="Cut").click()
    page.locator("#cut-tokens").fill("2")
    for special, kept in (("control", "<|endoftext|> a"), ("text", "<|")):
        page.locator("#special").select_option(special)
        ran = subprocess.run(
            [sys.executable, "-c", shared(page, "python")],
            capture_output=True,
            check=True,
            timeout=60,
            text=True,
        )
        assert ran.stdout == f"{kept}\n"


def test_the_shown_share_text_is_copied(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share").click()
    page.locator("#share-form").select_option("json")
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#share-said")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied)["text"] == page.input_value("#text")


def test_the_shown_request_is_the_sent_one(page: Page) -> None:
    request = json.loads(shared(page, "json"))
    assert request["text"] == TEXT
    assert request["offsets"] == "OFFSET_UNIT_BYTE"


def test_the_text_of_a_link_is_never_sent_in_a_url(site: RunningServer, page: Page) -> None:
    link = shared(page, "link")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto("about:blank")
    page.goto(link)
    page.locator("#tokens-view .t").first.wait_for()
    assert urls
    assert not [url for url in urls if "?" in url or (len(url) > 200 and "#" not in url)]


def test_copied_programs_read_the_key_from_the_environment(
    serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    (keys := tmp_path / "keys.toml").write_text(keys_toml(me="secret-key"), encoding="utf-8")
    page = open_page(serve("--api-keys-file", str(keys), "--playground", "on"))
    page.locator("#key").fill("secret-key")
    page.keyboard.press("Enter")
    page.locator("#tokens-view .t").first.wait_for()
    expected = ids(page)
    environment = os.environ | {"BYTEPAIR_API_KEY": "secret-key"}
    for form, program in (("curl", ["sh", "-c"]), ("python", [sys.executable, "-c"])):
        code = shared(page, form)
        assert "secret-key" not in code
        ran = subprocess.run(
            [*program, code], capture_output=True, check=True, timeout=60, env=environment
        )
        answered = json.loads(ran.stdout)
        assert (answered if form == "python" else answered["ids"]) == expected


def test_the_python_code_of_a_page_over_tls_uses_tls(
    serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    (authority := Authority()).server().write(tmp_path)
    files = ("--tls-cert-file", str(tmp_path / "server.pem"))
    server = serve(*files, "--tls-key-file", str(tmp_path / "key.pem"))
    page = open_page(server, scheme="https", ignore_https_errors=True)
    page.locator("#tokens-view .t").first.wait_for()
    # The certificate is for localhost, and gRPC reads the trusted authorities from the environment.
    (trusted := tmp_path / "ca.pem").write_bytes(authority.pem)
    ran = subprocess.run(
        [sys.executable, "-c", shared(page, "python").replace("127.0.0.1", "localhost")],
        capture_output=True,
        check=True,
        timeout=60,
        env=os.environ | {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(trusted)},
    )
    assert json.loads(ran.stdout) == ids(page)
