"""The tab Merges: the merge tree of a token, equal to that of `bytepair explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import EncodingSpec, get_encoding, load_encoding
from bytepair_engine.pipeline.derivation import Derivations, Part, model_of
from bytepair_engine.pipeline.describing import Describer
from conftest import Serve
from playwright.sync_api import Locator, Page, expect
from support.browsing import OpenPage, becomes, ids
from support.sentencepiece_models import trained
from support.serving import RunningServer, write_config
from support.tokenizer_json import made

NAME = "r50k_base"
ENCODING = get_encoding(NAME)


@pytest.fixture
def page(site: RunningServer, open_page: OpenPage) -> Page:
    """The tab, with the encoding NAME."""
    page = open_page(site)
    page.get_by_role("tab", name="Merges").click()
    page.locator("#merges-encoding").select_option(NAME)
    return page


def tree(part: Part) -> list[Any]:
    """Return the ids of a tree: a token's, followed by those of its two parts."""
    below = [] if part.left is None or part.right is None else [tree(part.left), tree(part.right)]
    return [part.id, *below]


def drawn(item: Locator) -> list[Any]:
    """Return the ids of the tree that the page shows."""
    said = item.locator("> .soft").inner_text()
    below = item.locator("> ul > li").all()
    return [int(said.split()[1]) if said else None, *map(drawn, below)]


def test_trees_equal_those_of_the_engine(page: Page) -> None:
    derivations = Derivations(model_of(ENCODING))
    for text in (" understanding", "ا", "        "):
        page.locator("#text").fill(text)
        becomes(page, lambda: ids(page, "#merges-view"), expected := ENCODING.encode(text))
        page.locator("#merges-view .t").first.click()
        (root,) = derivations.of(ENCODING.decode_single_token_bytes(expected[0]))
        status = page.locator("#tree-status")
        size = len(ENCODING.decode_single_token_bytes(expected[0]))
        if size == 1:
            expect(status).to_contain_text("This token stands for one byte")
            continue
        expect(status).to_contain_text(f"Token {expected[0]} is made of")
        assert drawn(page.locator(".tree > ul > li")) == tree(root)
        expect(page.locator(".steps li")).to_have_count(size)
        expect(page.locator(".steps mark")).to_have_count(size - 1)


def test_a_control_token_has_no_tree(page: Page) -> None:
    page.locator("#merges-encoding").select_option("o200k_base")
    page.locator("#special").select_option("control")
    page.locator("#text").fill("<|endoftext|>")
    page.locator("#merges-view .t.special").click()
    expect(page.locator("#tree-status")).to_have_text("A control token is not merged.")
    expect(page.locator("#tree > *")).to_have_count(0)


@pytest.mark.parametrize(("file", "order"), [("a.json", "priority"), ("a.model", "score")])
def test_trees_of_other_formats(
    serve: Serve, open_page: OpenPage, tmp_path: Path, file: str, order: str
) -> None:
    content = made("digits, then byte level") if file == "a.json" else trained("llama")
    (tmp_path / file).write_bytes(content)
    encoding = load_encoding(EncodingSpec(name="mine", file=tmp_path / file))
    config = write_config(tmp_path, f'[encodings.mine]\nfile = "{file}"\n')
    page = open_page(serve("--config", config))
    page.get_by_role("tab", name="Merges").click()
    page.locator("#merges-encoding").select_option("mine")
    page.locator("#text").fill("hello")
    becomes(page, lambda: ids(page, "#merges-view"), expected := encoding.encode("hello"))
    page.locator("#merges-view .t").first.click()
    expect(page.locator("#merges-detail")).not_to_contain_text("rank")
    (root,) = Describer(encoding).describe(expected[0]).parts
    expect(page.locator("#tree-status")).to_contain_text(f"Token {expected[0]} is made of")
    assert drawn(page.locator(".tree > ul > li")) == tree(root)
    expect(page.locator(".steps li").nth(1)).to_contain_text(order)
