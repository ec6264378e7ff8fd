"""Chat templates from files: a tokenizer_config.json, or a template file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bytepair_engine.chat.errors import BadTemplate
from bytepair_engine.chat.templates.format import Arguments, TemplateFormat


def load_template(
    name: str,
    file: str | Path,
    *,
    sha256: str | None = None,
    template: str = "default",
    variables: Mapping[str, Any] | None = None,
    options: Mapping[str, Iterable[str]] | None = None,
    encodings: Iterable[str] = (),
    arguments: Arguments = "object",
) -> TemplateFormat:
    """Load a format from the `chat_template` of a tokenizer_config.json, or from a template file.

    Args:
        name: The format's name.
        file: A JSON file with `chat_template` and its tokens, or a template file.
        sha256: The expected SHA-256 of the file in hexadecimal digits; None for no check.
        template: The name of the template, if the file has several.
        variables: See `TemplateFormat`; in addition to the tokens of the file, where null is None.
        options: See `TemplateFormat`.
        encodings: See `TemplateFormat`.
        arguments: See `TemplateFormat`.
    Raises:
        BadTemplate: The file or its template is invalid, or its hash differs.
        InvalidOption: See `TemplateFormat`.
        OSError: The file cannot be read.
    """
    path = Path(file)
    if path.exists() and not path.is_file():  # opening a FIFO may block for ever
        raise BadTemplate(name, None, "it is not a regular file")
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if sha256 is not None and digest != sha256.lower():
        raise BadTemplate(name, None, f"the file has the sha256 {digest}")
    try:
        source = data.decode()
    except UnicodeDecodeError:
        raise BadTemplate(name, None, "the file is not UTF-8") from None
    found: dict[str, Any] = {}
    if path.suffix == ".json":
        source, found = _from_config(name, source, template)
    return TemplateFormat(
        name,
        source,
        variables={**found, **(variables or {})},
        options=options,
        encodings=encodings,
        arguments=arguments,
        source=f"chat template of {path.name}, sha256 {digest[:16]}",
    )


def _from_config(name: str, source: str, which: str) -> tuple[str, dict[str, Any]]:
    try:
        config = json.loads(source)
    except (ValueError, RecursionError):
        raise BadTemplate(name, None, "the file is not JSON") from None
    templates = config.get("chat_template") if isinstance(config, dict) else None
    if isinstance(templates, list):
        items = [item for item in templates if isinstance(item, dict) and item.get("name") == which]
        templates = items[-1].get("template") if items else None
    if not isinstance(templates, str):
        raise BadTemplate(name, None, "the file has no chat_template of this name")
    tokens: dict[str, Any] = {}
    for key in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        token = config.get(f"{key}_token", ())
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str | None):
            tokens[f"{key}_token"] = token
    return templates, tokens
