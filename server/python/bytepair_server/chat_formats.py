"""Load the served chat formats: the built-in ones, and templates of the configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bytepair_engine.chat import BadTemplate, ChatFormat, get_chat_format, list_chat_formats

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import ChatFormatTable, Settings


def load(settings: Settings, base_dir: Path, encodings: Collection[str]) -> dict[str, ChatFormat]:
    """The chat formats by name, for encodings of these canonical names.

    Raises:
        ConfigurationError: A table or its file is invalid, or names clash.
    """
    found: dict[str, ChatFormat] = {name: get_chat_format(name) for name in list_chat_formats()}
    for table in settings.chat_formats:
        setting = f"chat_formats.{table.name}"
        if table.name in found:
            raise ConfigurationError(f"{setting}: a chat format already has this name; rename it")
        unknown = [name for name in table.encodings if name not in encodings]
        if unknown:
            raise ConfigurationError(
                f"{setting}: encodings: no encoding of this canonical name is loaded: {unknown[0]}"
            )
        found[table.name] = _loaded(setting, table, base_dir)
    return found


def _loaded(setting: str, table: ChatFormatTable, base_dir: Path) -> ChatFormat:
    try:
        from bytepair_engine.chat.templates import load_template
    except ImportError:
        raise ConfigurationError(
            f"{setting}: chat templates need Jinja2; install bytepair-engine[templates]"
        ) from None
    path = base_dir / table.file
    given: Mapping[str, Any] = table.model_dump(exclude={"name", "file"})
    try:
        return load_template(table.name, path, **given)
    except BadTemplate as error:
        line = "" if error.line is None else f", line {error.line} of the template"
        raise ConfigurationError(f"{setting}: {path}{line}: {error.fault}") from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a NUL
        reason = getattr(error, "strerror", None) or "no such path"
        raise ConfigurationError(f"{setting}: {path}: cannot be read: {reason}") from None
