"""`bytepair explain`: the tokens that the encoding gives, and nothing of a text that acts."""

from __future__ import annotations

import base64
import json
import random
import re
import sys
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from bytepair_engine import get_encoding
from bytepair_tools.explanation.text import Colour, wants_colour
from bytepair_tools.shared.visible import visible, visible_bytes
from support.hard_text import random_character
from support.sentencepiece_models import trained
from support.tokenizer_json import made

Shell = Callable[..., str]

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07 \u202eabc\u2066 \u200b\u2028 \x7f\x9b1m \u0301x "
    "<script>alert(1)</script> \"'><img src=x onerror=alert(1)> &lt; javascript:x \\n🙂\n"
)
#: What may not reach a terminal or a page: it acts, or it hides.
ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: All that a page is made of: nothing that loads, runs or styles.
_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "div", "a", "br"),
    *("section", "b", "span", "ul", "li", "table", "tr", "th", "td"),
}
_ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "dir", "href", "title", "id"),
}


def acting(text: str) -> set[str]:
    return {c for c in text if c != "\n" and unicodedata.category(c) in ACTING}


def test_the_tokens_are_those_of_the_encoding(shell: Shell) -> None:
    text = "Hello, naïve 🙂 <|endoftext|>"
    for name in ("gpt2", "gpt-4"):
        encoding = get_encoding(name)
        told = "the text contains the special token <|endoftext|>, which is ordinary text here"
        found = json.loads(shell("explain", text, "--encoding", name, "--json", errors=told))
        ids, starts = encoding.encode_with_offsets(text, unit="byte", disallowed_special=())
        assert [token["id"] for token in found["tokens"]] == ids
        assert [token["start"] for token in found["tokens"]] == starts
        assert b"".join(bytes.fromhex(token["data"]) for token in found["tokens"]) == text.encode()
        assert found["order"] == "rank"
    allowed = ("explain", text, "--encoding", "gpt2", "--allowed-special", "all", "--json")
    last = json.loads(shell(*allowed))["tokens"][-1]
    assert (last["id"], last["kind"], last["order"]) == (50256, "special", None)
    assert json.loads(shell("explain", "", "--encoding", "gpt2", "--json"))["tokens"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "a.model"])
def test_the_character_that_tokens_share_is_shown(shell: Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / "a.model").write_bytes(trained("llama"))
    text = "x 🦄🙂é日 \U00012345"
    usual = ("explain", text, "--encoding", name)
    tokens = json.loads(shell(*usual, "--json"))["tokens"]
    parts: dict[str, bytes] = {}
    for token in tokens:
        data = bytes.fromhex(token["data"])
        if not token["shared"]:
            assert "\ufffd" not in data.decode(errors="replace")
        for character in token["shared"]:
            parts[character] = parts.get(character, b"") + data
    assert "🦄" in parts
    for character, data in parts.items():
        assert character.encode() in data
    listed = shell(*usual)
    assert listed.count('"🦄"') == sum("🦄" in token["shared"] for token in tokens)
    assert "part of" not in shell("explain", "plain", "--encoding", name)
    shell(*usual, "--html", "a.html")
    assert "part of 🦄" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_merges_of_one_token(shell: Shell) -> None:
    by_number = ("explain", "Hello naïve", "--encoding", "gpt2", "--token", "1")
    by_text = ("explain", "-e", "gpt2", "--token", " naïve")
    by_id = ("explain", "--model", "gpt2", "--token", "41492")
    tree = shell(*by_number).split("\n\n")[-1]
    assert shell(*by_text) == shell(*by_id) == tree
    assert tree.splitlines()[:4] == [
        '" naïve", id 41492: how it is merged',
        '" naïve"  id 41492  rank 41492',
        '├── " na"  id 12385  rank 12385',
        '│   ├── " n"  id 299  rank 299',
    ]
    merges = json.loads(shell(*by_text, "--json"))["token"]["merges"]
    made_ids = [merge["id"] for merge in merges]
    assert made_ids == sorted(made_ids)
    assert merges[-1] == {"left": " na", "right": "ïve", "id": 41492}


def test_a_token_that_is_not_merged(shell: Shell, tmp_path: Path) -> None:
    """One whose bytes merge to others, a single byte, a special token."""
    words = "".join(f"{word} {rank}\n" for rank, word in enumerate(_single_bytes()))
    (tmp_path / "a.tiktoken").write_text(words + "YmM= 256\nYWJjZA== 257\n")  # bc, abcd
    usual = ("explain", "--encoding", "a.tiktoken", "--pattern", "gpt2", "--token")
    left = 'merging its own bytes does not make it; it leaves "a" "bc" "d"'
    assert shell(*usual, "abcd") == f'"abcd", id 257: {left}\n'
    assert shell(*usual, "65") == '"A", id 65: it is not merged\n'
    special = ("explain", "--encoding", "gpt2", "--token", "<|endoftext|>")
    assert shell(*special) == '"<|endoftext|>", id 50256: it is not merged\n'


def test_a_token_of_a_pipeline_is_named_by_what_it_decodes_to(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(trained("llama"))
    usual = ("explain", "--encoding", "a.model", "--token")
    tree = shell(*usual, " hello").splitlines()
    assert tree[0].startswith('" hello", id ')
    assert '"▁hello"' in tree[1]
    assert " score " in tree[1]
    told = shell(*usual, "A").splitlines()[0]
    assert told.startswith('"A", id ')
    shell(*usual, "nosuch", status=1, errors="these 6 bytes are not one token")


def _single_bytes() -> list[str]:
    return [base64.b64encode(bytes([byte])).decode() for byte in range(256)]


def test_nothing_of_a_text_acts_on_a_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = shell("explain", HOSTILE, "--encoding", "gpt2", "--token", "0")
    assert acting(plain) == set()
    assert "\\x1b" in plain
    always = ("explain", HOSTILE, "--encoding", "gpt2", "--color", "always")
    coloured = shell(*always)
    codes = re.compile(r"\x1b\[(30;48;5;\d+|97;41|0)m")
    assert acting(codes.sub("", coloured)) == set()
    # The same text, with colours in place of bars.
    marked = plain.split("\n\n")[1].replace("|", "")
    assert codes.sub("", coloured).split("\n\n")[1].replace("|", "") == marked
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    text = "x" + "".join(random_character(rng) for _ in range(300))  # no option
    assert acting(shell("explain", text, "--encoding", "gpt2")) == set()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(HOSTILE.encode())))
    assert shell("explain", "-", "--encoding", "gpt2", "--token", "0") == plain


@pytest.mark.parametrize(
    ("is_terminal", "variables", "choice", "expected"),
    [
        (True, {}, "auto", True),
        (True, {"NO_COLOR": "1"}, "auto", False),
        (True, {"NO_COLOR": ""}, "auto", True),
        (True, {"TERM": "dumb"}, "auto", False),
        (False, {}, "auto", False),
        (True, {"NO_COLOR": "1"}, "always", True),
        (True, {}, "never", False),
    ],
)
def test_when_colours_are_written(
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    variables: dict[str, str],
    choice: Colour,
    expected: bool,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert wants_colour(choice) is expected


class Page(HTMLParser):
    """What a browser would see: tags with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


@pytest.mark.parametrize("name", ["gpt2", "a.model", "a.json"])
def test_a_page_shows_the_same_and_nothing_of_a_text_acts(
    shell: Shell, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.model").write_bytes(trained("llama"))
    (tmp_path / "a.json").write_bytes(made("an end of word"))
    usual = ("explain", HOSTILE, "--encoding", name)
    assert shell(*usual, "--html", "a.html") == ""
    tokens = json.loads(shell(*usual, "--json"))["tokens"]
    written = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert acting(written) == set()
    page = Page(written)
    assert {tag for tag, _ in page.tags} <= _TAGS
    assert {key for _, attributes in page.tags for key in attributes} <= _ATTRIBUTES
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    links = [a["href"] for tag, a in page.tags if tag == "a" and "class" in a]
    assert links == [f"#t{token['id']}" for token in tokens]
    trees = [str(a["id"]) for tag, a in page.tags if tag == "section"]
    assert sorted(trees) == sorted({f"t{token['id']}" for token in tokens})
    shown = "".join(page.shown)
    for token in tokens:
        assert token["token"] in shown


def test_a_page_for_one_token(shell: Shell, tmp_path: Path) -> None:
    shell("explain", "a bc", "--encoding", "gpt2", "--token", "1", "--html", "a.html")
    chosen = get_encoding("gpt2").encode("a bc")[1]
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    classes = {a["id"]: a["class"] for tag, a in page.tags if tag == "section"}
    assert [i for i, style in classes.items() if style == "tree chosen"] == [f"t{chosen}"]
    lists = [tag for tag, _ in page.tags if tag in ("ul", "li")]
    assert lists.count("li") == sum(2 * len(t) - 1 for t in (b" bc",))


def test_a_deep_tree_ends_in_words(shell: Shell, tmp_path: Path) -> None:
    """Its depth is the vocabulary's to choose, and that is anybody's."""
    lines = [f"{token} {rank}\n" for rank, token in enumerate(_single_bytes())]
    tokens = [b"a" + b"b" * count for count in range(1, 400)]
    lines += [f"{base64.b64encode(t).decode()} {256 + n}\n" for n, t in enumerate(tokens)]
    (tmp_path / "a.tiktoken").write_text("".join(lines))
    usual = ("explain", "a" + "b" * 399, "--encoding", "a.tiktoken", "--pattern", "gpt2")
    assert "… and 702 parts below" in shell(*usual, "--token", "0")
    shell(*usual, "--html", "a.html")
    assert "… and 702 parts below" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert len(json.loads(shell(*usual, "--token", "0", "--json"))["token"]["merges"]) == 399


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ((), 2, "give a TEXT, or a --token"),
        (("a", "--token", "5"), 1, "--token 5: the text has 1 tokens, numbered from 0"),
        (("--token", "60000"), 1, "no token has id 60000"),
        (("--token", "no such token"), 1, "these 13 bytes are not one token"),
        (("a \ud800",), 1, "lone surrogate at byte 2"),
        (("a " * 20_001,), 1, "the text has 20,002 tokens, and 20,000 can be explained"),
        (("a", "--html", "no/a.html"), 1, "no/a.html: cannot be written"),
        (("a", "--allowed-special", "<x>"), 1, "'<x>' is no special token of r50k_base"),
    ],
)
def test_bad_input(shell: Shell, arguments: tuple[str, ...], status: int, told: str) -> None:
    shell("explain", *arguments, "--encoding", "gpt2", status=status, errors=told)


def test_what_is_visible_shows_itself_and_tells_texts_apart() -> None:
    characters = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x11000)]]
    shown = [visible(character) for character in characters]
    assert len(set(shown)) == len(characters)
    assert acting("".join(shown)) == set()
    assert visible("\ud800") == "\\ud800"
    assert visible_bytes(b"\\xff") != visible_bytes(b"\xff") == "\\xff"
    assert visible("\u0301") == "\u25cc\u0301"
