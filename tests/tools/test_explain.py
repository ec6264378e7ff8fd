"""`bytepair explain` shows the tokens of the encoding, and no text that acts on a terminal."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import stat
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.context.inspecting import inspect
from bytepair_tools.explanation.text import Colour, wants_colour
from bytepair_tools.shared.visible import visible, visible_bytes
from support.hard_text import random_character
from support.in_process import Command
from support.sentencepiece_models import trained
from support.serving import clean_environment
from support.shell import command
from support.tokenizer_json import made

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07 \u202eabc\u2066 \u200b\u2028 \x7f\x9b1m \u0301x "
    "<script>alert(1)</script> \"'><img src=x onerror=alert(1)> &lt; javascript:x \\n🙂\n"
)
#: Characters that must not reach a terminal or a page: they act or hide.
ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def acting(text: str) -> set[str]:
    return {c for c in text if c != "\n" and unicodedata.category(c) in ACTING}


def test_the_tokens_equal_those_of_the_encoding(shell: Command) -> None:
    text = "Hello, naïve 🙂 <|endoftext|>"
    for name in ("gpt2", "gpt-4"):
        encoding = get_encoding(name)
        found = json.loads(shell("explain", text, "--encoding", name, "--json"))
        ids, starts = encoding.encode_with_offsets(text, unit="byte", disallowed_special=())
        assert [token["id"] for token in found["tokens"]] == ids
        assert [token["start"] for token in found["tokens"]] == starts
        assert b"".join(bytes.fromhex(token["data"]) for token in found["tokens"]) == text.encode()
        assert found["order"] == "rank"
    allowed = ("explain", text, "--encoding", "gpt2", "--allowed-special", "all", "--json")
    last = json.loads(shell(*allowed))["tokens"][-1]
    assert (last["id"], last["kind"], last["order"]) == (50256, "special", None)
    assert json.loads(shell("explain", "", "--encoding", "gpt2", "--json"))["tokens"] == []


def test_a_text_is_the_bytes_of_the_argument(shell: Command) -> None:
    """In a locale that is not UTF-8, Python gives each byte as a lone surrogate."""
    expected = shell("explain", "ü", "--encoding", "gpt2", "--json")
    assert shell("explain", "\udcc3\udcbc", "--encoding", "gpt2", "--json") == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "a.model"])
def test_a_character_shared_by_tokens_is_shown(shell: Command, tmp_path: Path, name: str) -> None:
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


def test_the_encoding_may_be_in_the_environment(
    shell: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYTEPAIR_ENCODING", "gpt2")
    assert "of r50k_base" in shell("explain", "a")
    assert "of cl100k_base" in shell("explain", "a", "--encoding", "gpt-4")
    monkeypatch.setenv("BYTEPAIR_ENCODING", "")
    shell("explain", "a", status=2, errors="required: -e/--encoding")


def test_the_merges_of_one_token(shell: Command) -> None:
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


def test_a_token_that_is_not_produced_by_merging(shell: Command, tmp_path: Path) -> None:
    """A token whose bytes merge to others, a single byte, and a special token."""
    words = "".join(f"{word} {rank}\n" for rank, word in enumerate(_single_bytes()))
    (tmp_path / "a.tiktoken").write_text(words + "YmM= 256\nYWJjZA== 257\n")  # bc, abcd
    usual = ("explain", "--encoding", "a.tiktoken", "--pattern", "gpt2", "--token")
    left = 'merging its own bytes does not make it; it leaves "a" "bc" "d"'
    assert shell(*usual, "abcd") == f'"abcd", id 257: {left}\n'
    assert shell(*usual, "65") == '"A", id 65: it is not merged\n'
    special = ("explain", "--encoding", "gpt2", "--token", "<|endoftext|>")
    assert shell(*special) == '"<|endoftext|>", id 50256: it is not merged\n'


def test_a_token_of_a_pipeline_is_selected_by_its_decoded_text(
    shell: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.model").write_bytes(trained("llama"))
    usual = ("explain", "--encoding", "a.model", "--token")
    tree = shell(*usual, " hello").splitlines()
    assert tree[0].startswith('" hello", id ')
    assert '"▁hello"' in tree[1]
    assert " score " in tree[1]
    message = shell(*usual, "A").splitlines()[0]
    assert message.startswith('"A", id ')
    shell(*usual, "nosuch", status=1, errors="these 6 bytes are not one token")


def _single_bytes() -> list[str]:
    return [base64.b64encode(bytes([byte])).decode() for byte in range(256)]


def test_no_text_acts_on_a_terminal(shell: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shell("explain", HOSTILE, "--encoding", "gpt2", "--token", "0")
    assert acting(plain) == set()
    assert "\\x1b" in plain
    always = ("explain", HOSTILE, "--encoding", "gpt2", "--color", "always")
    coloured = shell(*always)
    codes = re.compile(r"\x1b\[(30;48;5;\d+|97;41|0)m")
    assert acting(codes.sub("", coloured)) == set()
    # The same text, with colours instead of bars.
    marked = plain.split("\n\n")[1].replace("|", "")
    assert codes.sub("", coloured).split("\n\n")[1].replace("|", "") == marked
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    text = "x" + "".join(random_character(rng) for _ in range(300))  # does not look like an option
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
def test_when_colours_are_used(
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
    """The elements of a page, each with its attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.elements:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    @property
    def data(self) -> Any:
        """Return the data that the page's script draws."""
        return json.loads(next(text for _, a, text in self.elements if a.get("id") == "data"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "a.model", "a.json"])
def test_a_page_has_the_same_content_and_no_text_acts(
    shell: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.model").write_bytes(trained("llama"))
    (tmp_path / "a.json").write_bytes(made("an end of word"))
    usual = ("explain", HOSTILE, "--encoding", name)
    assert shell(*usual, "--html", "a.html") == ""
    tokens = json.loads(shell(*usual, "--json"))["tokens"]
    written = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert acting(written) == set()
    # Another text changes only the data.
    shell("explain", "x", "--encoding", name, "--html", "x.html")
    page, other = Page(written), Page((tmp_path / "x.html").read_text(encoding="utf-8"))
    for one, two in zip(page.elements, other.elements, strict=True):
        assert one[:2] == two[:2]
        assert one[2] == two[2] or one[1].get("id") == "data"
    assert [token["id"] for token in page.data["tokens"]] == [token["id"] for token in tokens]
    data = [base64.b64decode(token["data"]).hex() for token in page.data["tokens"]]
    assert data == [token["data"] for token in tokens]
    assert page.data["text"] == HOSTILE
    assert set(page.data["trees"]) == {str(token["id"]) for token in tokens}


def test_a_page_can_run_its_own_script_and_load_nothing(shell: Command, tmp_path: Path) -> None:
    shell("explain", "a", "--encoding", "gpt2", "--html", "a.html")
    elements = Page((tmp_path / "a.html").read_text(encoding="utf-8")).elements
    policy = next(a["content"] for _, a, _ in elements if "http-equiv" in a)
    digests = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag, a, text in elements
        if tag in ("style", "script") and a.get("id") != "data"
    }
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digests['script']}'; "
        f"style-src 'sha256-{digests['style']}'; base-uri 'none'; form-action 'none'"
    )
    assert not {"src", "href", "style", "onload"} & {key for _, a, _ in elements for key in a}


def test_a_page_for_one_token(shell: Command, tmp_path: Path) -> None:
    shell("explain", "a bc", "--encoding", "gpt2", "--token", "1", "--html", "a.html")
    chosen = get_encoding("gpt2").encode("a bc")[1]
    data = Page((tmp_path / "a.html").read_text(encoding="utf-8")).data
    assert data["chosen"] == chosen
    spelled = [base64.b64decode(part[0]) for part in data["trees"][str(chosen)]]
    assert spelled == [b" ", b"b", b"c", b" b", b" bc"]
    assert data["trees"][str(chosen)][-1][3:] == [3, 2]


def test_findings_equal_those_of_inspect(shell: Command, tmp_path: Path) -> None:
    text = "\U0001f984 wo\u200brld <|endoftext|> "
    usual = ("explain", text, "--encoding", "gpt2")
    found = inspect(get_encoding("gpt2"), text)
    inspection = json.loads(shell(*usual, "--json"))["inspection"]
    assert [(each["start"], each["end"], each["code"]) for each in inspection["findings"]] == [
        (each.start, each.end, each.code.name) for each in found.findings
    ]
    assert inspection["stable_tokens"] == found.stable_tokens
    listed = shell(*usual)
    assert "4-5         INVISIBLE_CHARACTER    U+200B\n" in listed
    assert listed.endswith('22-23       UNSTABLE_TAIL          " "\n')
    stable = f"{found.stable_tokens} of {found.count} tokens"
    assert f"{stable} stay the same whatever text follows" in listed
    shell(*usual, "--html", "a.html")
    drawn = Page((tmp_path / "a.html").read_text(encoding="utf-8")).data["findings"]
    # They are in UTF-16 code units there.
    assert [each["start"] for each in drawn["findings"]] == [
        each.start + 1 for each in found.findings
    ]


def test_an_encoding_without_split_points_has_no_findings(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.tiktoken").write_text(
        "".join(f"{word} {rank}\n" for rank, word in enumerate(_single_bytes()))
    )
    usual = ("explain", "x y ", "--encoding", "a.tiktoken", "--pattern", r"\w+|\s")
    assert shell(*usual).endswith("no findings: the split points of this encoding are not known\n")
    assert json.loads(shell(*usual, "--json"))["inspection"] is None
    shell(*usual, "--html", "a.html")
    assert Page((tmp_path / "a.html").read_text(encoding="utf-8")).data["findings"] is None


def test_tokens_found_by_an_audit_are_findings(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[flagged_tokens]\nr50k_base = [43453]\n")
    usual = ("explain", "a SolidGoldMagikarp", "--encoding", "gpt2", "--flagged-tokens")
    assert "1-19        FLAGGED_TOKEN  id 43453" in shell(*usual, "a.toml")
    for content, message in (
        ("x = 1", "a.toml: not TOML with a table flagged_tokens that has r50k_base"),
        ("[flagged_tokens]\nr50k_base = ['a']", "must be a list of token ids"),
    ):
        (tmp_path / "b.toml").write_text(content)
        shell(*usual, "b.toml", status=1, errors=message.replace("a.toml", "b.toml"))
    shell(*usual, "none.toml", status=1, errors="none.toml: cannot be read")


@pytest.mark.slow
def test_a_deep_tree_is_truncated_with_a_note(shell: Command, tmp_path: Path) -> None:
    """An untrusted vocabulary chooses the depth."""
    lines = [f"{token} {rank}\n" for rank, token in enumerate(_single_bytes())]
    tokens = [b"a" + b"b" * count for count in range(1, 400)]
    lines += [f"{base64.b64encode(t).decode()} {256 + n}\n" for n, t in enumerate(tokens)]
    (tmp_path / "a.tiktoken").write_text("".join(lines))
    usual = ("explain", "a" + "b" * 399, "--encoding", "a.tiktoken", "--pattern", "gpt2")
    assert "… and 702 parts below" in shell(*usual, "--token", "0")
    assert len(json.loads(shell(*usual, "--token", "0", "--json"))["token"]["merges"]) == 399


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        ('"$@" >&-', 1, "bytepair: cannot write the output: Bad file descriptor\n"),
        ('"$@" >/dev/full', 1, "bytepair: cannot write the output: No space left on device\n"),
        ('"$@"', 141, ""),
        ('"$@" --on - <&-', 1, "bytepair evaluate: standard input: Bad file descriptor\n"),
    ],
)
def test_a_stream_that_is_closed_or_full(line: str, status: int, error: str) -> None:
    """The output is a pipe that nobody reads; whether Python buffers it or not."""
    run = ("evaluate", "gpt2") if "--on" in line else ("explain", "a", "--encoding", "gpt2")
    end, output = os.pipe()
    os.close(end)
    for unbuffered in ("", "1"):
        ran = subprocess.run(
            ["sh", "-c", line, "sh", *command(*run)],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=clean_environment(PYTHONUNBUFFERED=unbuffered),
        )
        assert (ran.returncode, ran.stderr) == (status, error)
    os.close(output)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "TEXT or --token is required"),
        (("a", "--token", "5"), 1, "--token 5: the text has 1 token, numbered from 0"),
        (("--token", "60000"), 1, "no token has id 60000"),
        (("--token", "no such token"), 1, "these 13 bytes are not one token"),
        (("a \udce9",), 1, "TEXT: not UTF-8: byte 2 starts no character; convert it first"),
        (("a " * 20_001,), 1, "the text has 20,002 tokens, and at most 20,000 can be explained"),
        (("a", "--html", "no/a.html"), 1, "no/a.html: cannot be written"),
        (("a", "--allowed-special", "<x>"), 1, "'<x>' is not a special token of r50k_base"),
    ],
)
def test_bad_input(shell: Command, arguments: tuple[str, ...], status: int, message: str) -> None:
    shell("explain", *arguments, "--encoding", "gpt2", status=status, errors=message)


def test_visible_text_is_unambiguous_and_without_control_characters() -> None:
    characters = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x11000)]]
    shown = [visible(character) for character in characters]
    assert len(set(shown)) == len(characters)
    assert acting("".join(shown)) == set()
    assert visible("\ud800") == "\\ud800"
    assert visible_bytes(b"\\xff") != visible_bytes(b"\xff") == "\\xff"
    assert visible("\u0301") == "\u25cc\u0301"


def test_a_page_has_the_permissions_of_the_umask_or_of_the_file_that_it_replaces(
    shell: Command, tmp_path: Path
) -> None:
    def mode() -> int:
        shell("explain", "a", "--encoding", "gpt2", "--html", "a.html")
        return stat.S_IMODE(page.stat().st_mode)

    page = tmp_path / "a.html"
    usual = os.umask(0o027)
    try:
        assert mode() == 0o640
        for kept in (0o600, 0o664):
            page.chmod(kept)
            assert mode() == kept
    finally:
        os.umask(usual)
    assert list(tmp_path.iterdir()) == [page]
