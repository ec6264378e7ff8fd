"""Formats that are loaded from the files of chat templates, and the tokens that these name."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from bytepair_engine.chat import (
    BadTemplate,
    InvalidChat,
    count_chat,
    encode_chat,
)
from bytepair_engine.chat.templates import TemplateFormat, load_template
from support.chat_templates import ENCODING


def test_templates_are_loaded_from_files(tmp_path: Any) -> None:
    config = tmp_path / "tokenizer_config.json"
    config.write_text(
        json.dumps({"chat_template": "{{ bos_token }}{{ messages[0].content }}",
                    "bos_token": {"content": "<c>"}})
    )  # fmt: skip
    chosen = load_template("mine", config)
    chat = [{"role": "user", "content": "<c>"}]
    found = encode_chat(chat, encoding=ENCODING, format=chosen, disallowed_special=())
    assert [str(segment) for segment in found.segments] == ["Control('<c>')", "<c>"]
    plain_file = tmp_path / "template.jinja"
    plain_file.write_text("{{ messages[0].content }}")
    assert load_template("mine", plain_file).fingerprint != chosen.fingerprint
    with pytest.raises(BadTemplate, match="sha256"):
        load_template("mine", config, sha256="0" * 64)
    named: list[Any] = [
        {"name": name, "template": text} for name, text in (("a", "x"), ([], "y"), ("b", 1))
    ]
    config.write_text(json.dumps({"chat_template": ["z", *named]}))
    chosen = load_template("mine", config, template="a")
    assert encode_chat(chat, encoding=ENCODING, format=chosen).segments == ["x"]
    for missing in ("b", "c", "default"):
        with pytest.raises(BadTemplate, match="chat_template"):
            load_template("mine", config, template=missing)
    for invalid in ("{}", "[]"):
        config.write_text(invalid)
        with pytest.raises(BadTemplate, match="chat_template"):
            load_template("mine", config)


def test_the_tokens_of_a_file_are_variables(tmp_path: Any) -> None:
    """Those that are null are undefined, and variables of the declaration replace them."""
    config = tmp_path / "tokenizer_config.json"
    template = "{{ bos_token }}{{ eos_token }}|{{ pad_token }}"
    tokens = {"bos_token": {"content": "a"}, "eos_token": "b", "pad_token": None}
    config.write_text(json.dumps({"chat_template": template, **tokens}))
    digest = hashlib.sha256(config.read_bytes()).hexdigest().upper()
    given: dict[str, Any] = {"variables": {"eos_token": "c"}, "encodings": ["t"]}
    chosen = load_template("mine", config, sha256=digest, **given)
    chat = [{"role": "user", "content": ""}]
    assert encode_chat(chat, encoding=ENCODING, format=chosen).segments == ["ac|"]
    none = TemplateFormat("mine", "{{ pad_token is defined }}", variables={"pad_token": None})
    assert encode_chat(chat, encoding=ENCODING, format=none).segments == ["False"]


@pytest.mark.parametrize(
    "written", ["{{ t_token }}", "{{ t_token ~ 'a' }}", "{{ [t_token]|join }}"]
)
def test_a_token_that_is_not_given_may_be_tested_but_not_written(
    written: str, tmp_path: Any
) -> None:
    """A count without it would be too small."""
    fault = "the template writes t_token, which is not given.* see line 2 of the template"
    files = (tmp_path / "template.jinja", f"\n{written}"), (tmp_path / "c.json", json.dumps({
        "chat_template": f"\n{written}"
    }))  # fmt: skip
    for file, content in files:
        file.write_text(content)
        with pytest.raises(BadTemplate, match=fault):
            load_template("mine", file)
        for value in ("<c>", "", None):
            load_template("mine", file, variables={"t_token": value})
    tested = "{% if t_token %}x{% endif %}{{ t_token is defined }}{{ t_token or 'y' }}"
    later = f"\n{{% if tools %}}{written}{{% endif %}}"
    chosen = TemplateFormat("mine", tested + later)
    chat = [{"role": "user", "content": ""}]
    assert encode_chat(chat, encoding=ENCODING, format=chosen).segments == ["Falsey\n"]
    with pytest.raises(InvalidChat, match=fault) as failed:
        count_chat(chat, encoding=ENCODING, format=chosen, tools=[{"name": "f"}])
    assert failed.value.rule == "token_not_given"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "not a regular file"),
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
    ids=["a folder", "bytes", "no JSON", "deep JSON"],
)
def test_a_file_that_is_no_template_is_rejected(
    tmp_path: Any, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "template.json"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(BadTemplate, match=problem):
        load_template("mine", file)
    with pytest.raises(FileNotFoundError):
        load_template("mine", tmp_path / "none.json")
