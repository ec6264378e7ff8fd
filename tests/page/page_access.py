"""Accessibility: axe-core, keyboard only, a phone, dark and light."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from support.browsing import OpenPage, violations
from support.serving import RunningServer

PHONE = {"width": 360, "height": 740}
TABS = ("Tokens", "Compare", "Merges", "Cut", "Findings", "Chat")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", TABS)
def test_axe_finds_nothing(site: RunningServer, open_page: OpenPage, tab: str, scheme: str) -> None:
    page = open_page(site, color_scheme=scheme)
    page.locator("#special").select_option("control")
    page.get_by_role("tab", name=tab).click()
    if tab == "Chat":
        page.locator("#chat-encoding").select_option("o200k_harmony")
        page.locator("#chat-format").select_option("harmony")
        page.locator("#chat-window").fill("100000")
        expect(page.locator("#fit-status")).to_contain_text("everything fits")
    panel = page.get_by_role("tabpanel")
    if tab in ("Cut", "Findings"):
        panel.locator(".text > .kept, #findings-list button").first.wait_for()
    else:
        panel.locator(".t.special").first.wait_for()
        panel.locator(".t").nth(3).click()
    assert violations(page) == []


def test_axe_finds_nothing_in_errors_and_dialogs(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    page.locator("#mode").select_option("ids")
    page.locator("#ids").fill("x")
    expect(page.locator("#tokens-status.error")).to_be_visible()
    assert violations(page) == []
    page.locator("#ids").fill("")
    expect(page.locator("#tokens-status")).to_contain_text("0 tokens")
    assert violations(page) == []
    page.get_by_role("button", name="Share").click()
    assert violations(page) == []


@pytest.mark.parametrize("tab", TABS)
def test_no_element_is_wider_than_a_phone(
    site: RunningServer, open_page: OpenPage, tab: str
) -> None:
    page = open_page(site, viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("#text").fill("long" * 200 + " and \u202e 🤖 " * 20)
    page.get_by_role("tab", name=tab).click()
    page.get_by_role("tabpanel").locator("[role=status]").first.wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_on_a_phone_the_description_does_not_cover_the_chosen_token(
    site: RunningServer, open_page: OpenPage
) -> None:
    page = open_page(site, viewport=PHONE, has_touch=True, is_mobile=True)
    token = page.locator("#tokens-view .t").nth(2)
    token.wait_for()
    expect(page.locator("#tokens-detail")).to_have_css("position", "static")
    token.tap()
    expect(page.locator("#tokens-detail")).to_contain_text("3 of")
    expect(page.locator("#tokens-detail")).to_be_in_viewport(ratio=1)
    token.tap(trial=True)  # fails if another element would get the tap


def test_the_page_can_be_used_by_keyboard_only(site: RunningServer, open_page: OpenPage) -> None:
    page = open_page(site)
    page.keyboard.press("Tab")
    expect(page.get_by_role("tab", name="Tokens")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Compare")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Compare")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Chat")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Tokens")).to_be_focused()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.role"))
    assert reached[:6] == ["share", "mode", "special", "text", "encoding", "listbox"]
    page.locator("#share").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Share")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#share")).to_be_focused()
