"""Chat templates of the configuration: formats like the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bytepair_client import (
    ChatFormatMismatch,
    ChatFormatNotPermitted,
    InvalidChat,
    InvalidOption,
    TemplateLimit,
)
from bytepair_client import TokenizerClient as Client
from bytepair_server.catalog import load
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.loader import load as load_settings
from support.chat_templates import CHATML
from support.serving import RunningServer, write_config

CHAT = [{"role": "user", "content": "hi<|im_end|>"}, {"role": "assistant", "content": "yes"}]
SPINS = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"


@pytest.mark.slow
def test_templates_of_the_configuration_are_formats(tmp_path: Path) -> None:
    template = CHATML + "{{ bos_token if prefixed }}"
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": template, "bos_token": "<|im_start|>"})
    )
    (tmp_path / "spins.jinja").write_text(SPINS)
    (tmp_path / "refuses.jinja").write_text("{{ raise_exception('secret') }}")
    (tmp_path / "dated.jinja").write_text("{{ strftime_now('%Y') if messages | length < 2 }}")
    config = write_config(
        tmp_path,
        """
        builtin_encodings = ["r50k_base"]
        [encodings.own]
        extends = "o200k_base"
        special_tokens = { "<|im_start|>" = 200020, "<|im_end|>" = 200021 }
        [[chat_formats]]
        name = "own"
        file = "tokenizer_config.json"
        encodings = ["own"]
        options = { prefixed = ["false", "true"] }
        [[chat_formats]]
        name = "any"
        file = "tokenizer_config.json"
        [[chat_formats]]
        name = "spins"
        file = "spins.jinja"
        [[chat_formats]]
        name = "refuses"
        file = "refuses.jinja"
        [[chat_formats]]
        name = "dated"
        file = "dated.jinja"
        [ceiling.default]
        formats = ["own"]
        """,
    )
    with (
        RunningServer("--config", config) as running,
        Client(running.target, encoding="own") as client,
    ):
        formats = {each.name: each for each in client.list_chat_formats()}
        assert formats["own"].encodings == ("own",)
        assert set(formats["own"].control_tokens) == {"<|im_start|>", "<|im_end|>"}
        assert "tokenizer_config.json" in formats["own"].source
        assert formats["any"].encodings == ("own",)
        with pytest.raises(ChatFormatMismatch) as mismatch:
            client.count_chat(CHAT, format="any", encoding="r50k_base")
        assert mismatch.value.missing == "<|im_end|>, <|im_start|>"
        count = client.count_chat(CHAT, format="own")
        assert count == client.count_chat(CHAT, format="any")
        assert count == client.count_chat(CHAT, format="chatml")
        ids = client.encode_chat(CHAT, format="own", disallowed_special=())
        assert len(ids) == count
        assert ids.count(200021) == 2
        assert client.fit_chat(CHAT, count, format="own") == [0, 1]
        with pytest.raises(ChatFormatNotPermitted):
            client.encode_chat(CHAT, format="spins")
        with pytest.raises(TemplateLimit) as limited:
            client.count_chat(CHAT, format="spins")
        assert limited.value.limit == "steps"
        with pytest.raises(InvalidChat) as refused:
            client.count_chat(CHAT, format="refuses")
        assert refused.value.rule == "template_rejected"
        assert "secret" not in str(refused.value)
        with pytest.raises(InvalidOption, match="current_date"):
            client.count_chat(CHAT[:1], format="dated")
        dated = client.count_chat_batch([CHAT, CHAT[:1]], format="dated", return_exceptions=True)
        assert dated[0] == 0
        assert isinstance(dated[1], InvalidOption)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "t"\nfile = "bad.jinja"', "bad.jinja, line 2 of the template: "),
        ('name = "t"\nfile = "none.jinja"', "cannot be read"),
        ('name = "t"\nfile = "."', "it is not a regular file"),
        ('name = "t"\nfile = "good.jinja"\nsha256 = "' + "0" * 64 + '"', "has the sha256"),
        ('name = "harmony"\nfile = "good.jinja"', "already"),
        ('name = "t"\nfile = "good.jinja"\nencodings = ["x"]', "no encoding of this"),
        ('name = "t"\nfile = "good.jinja"\nfil = 1', "did you mean file"),
        ('name = "a b"\nfile = "good.jinja"', "chat_formats.0.name"),
        ('name = "t"\nfile = "bad.json"', "the file has no chat_template"),
    ],
)
def test_a_faulty_chat_format_table_stops_the_start(tmp_path: Path, table: str, words: str) -> None:
    (tmp_path / "bad.jinja").write_text("a\n{% if %}")
    (tmp_path / "good.jinja").write_text("a")
    (tmp_path / "bad.json").write_text("{}")
    text = f'builtin_encodings = ["r50k_base"]\n[[chat_formats]]\n{table}\n'
    config = write_config(tmp_path, text)
    with pytest.raises(ConfigurationError, match=words):
        load(load_settings(["--config", config], {}).settings, tmp_path)
