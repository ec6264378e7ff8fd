"""Chats rendered and encoded by the publishers' own libraries."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.formats.vocabularies import FOLDER

Messages = list[dict[str, Any]]


@cache
def harmony() -> Any:
    """openai-harmony's encoding, from the table that the engine carries."""
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(files("bytepair_engine") / "data")
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


@cache
def template(name: str, text: str | None = None, which: str = "default") -> Callable[..., str]:
    """The chat template of a published tokenizer_config.json, or another one for its vocabulary,
    rendered as transformers does."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    config = json.loads((FOLDER / f"{name}.config.json").read_text())
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)

    def fail(message: str) -> None:
        raise ValueError(message)

    environment.globals["raise_exception"] = fail
    tokens = {key: config.get(key) for key in config if key.endswith("_token")}
    given = {
        key: value["content"] if isinstance(value, dict) else value
        for key, value in tokens.items()
        if isinstance(value, (dict, str))
    }
    found = config["chat_template"]
    if isinstance(found, list):
        found = next(each["template"] for each in found if each["name"] == which)
    compiled = environment.from_string(text or found)
    return lambda messages, **values: compiled.render(messages=messages, **given, **values)


@cache
def llama() -> Any:
    """Meta's reference implementation."""
    from llama_models.llama3.chat_format import ChatFormat
    from llama_models.llama3.tokenizer import Tokenizer

    return ChatFormat(Tokenizer(FOLDER / "llama3.tiktoken"))


@cache
def mistral(version: str, file: Path) -> Any:
    """mistral-common's tokenizer of one version, over one file."""
    from mistral_common.protocol.instruct.normalize import get_normalizer
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
    from mistral_common.tokens.tokenizers.base import TokenizerVersion
    from mistral_common.tokens.tokenizers.instruct import (
        InstructTokenizerV1,
        InstructTokenizerV2,
        InstructTokenizerV3,
        InstructTokenizerV7,
        InstructTokenizerV11,
        InstructTokenizerV13,
    )
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    classes = {
        "v1": InstructTokenizerV1,
        "v2": InstructTokenizerV2,
        "v3": InstructTokenizerV3,
        "v7": InstructTokenizerV7,
        "v11": InstructTokenizerV11,
        "v13": InstructTokenizerV13,
    }
    if file.suffix == ".json":
        tokenizer: Any = Tekkenizer.from_file(file)
    else:
        tokenizer = SentencePieceTokenizer(str(file), tokenizer_version=TokenizerVersion(version))
    chosen = TokenizerVersion(version)
    validator = get_validator(chosen, ValidationMode.test)
    return MistralTokenizer(classes[version](tokenizer), validator, get_normalizer(chosen, None))
