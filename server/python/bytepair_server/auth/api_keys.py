"""The operator's file of API keys: callers, and the hashes of their keys.

A caller may have several hashes, so that a key can be rotated without a gap, or none, so that the
last one can be revoked:

    billing = ["sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
    chat = []
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bytepair_server.config.loader import ConfigurationError, contents

_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Keys:
    """The content of the file.

    Attributes:
        by_hash: Callers by the SHA-256 of each of their keys.
        callers: All callers, including those without a key.
    """

    by_hash: Mapping[bytes, str]
    callers: frozenset[str]


def hashed(key: str) -> bytes:
    """The SHA-256 of a key. The file holds this hash, and calls look it up. A fast one suffices:
    keys are long and random."""
    return hashlib.sha256(key.encode()).digest()


def read(path: Path, reserved: Collection[str] = ()) -> Keys:
    """Read the file, in which no caller may have a reserved name.

    Raises:
        ConfigurationError: The file is invalid. Its values are never quoted: one may be a key
            that was not hashed.
    """
    setting = f"api_keys_file {path}"
    try:
        table = tomllib.loads(contents("api_keys_file", path).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigurationError(f"{setting}: is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise ConfigurationError(f"{setting}: is not TOML{_where(error)}") from None
    keys: dict[bytes, str] = {}
    for caller, hashes in table.items():
        if caller in reserved:
            raise ConfigurationError(f"{setting}: the name {caller!r} is reserved; choose another")
        if not caller.isprintable() or not caller:
            raise ConfigurationError(f"{setting}: {caller!r} is not a printable name")
        if not isinstance(hashes, list):
            raise ConfigurationError(f"{setting}: caller {caller!r} needs a list of key hashes")
        for index, entry in enumerate(hashes):
            match = _HASH.fullmatch(entry) if isinstance(entry, str) else None
            if match is None:
                raise ConfigurationError(
                    f"{setting}: entry {index} of caller {caller!r} is not 'sha256:' and 64 "
                    "lower-case hexadecimal digits; make one by: printf %s KEY | sha256sum"
                )
            digest = bytes.fromhex(match[1])
            if digest == hashed(""):
                raise ConfigurationError(
                    f"{setting}: entry {index} of caller {caller!r}: the key was empty when it was "
                    "hashed"
                )
            if keys.setdefault(digest, caller) != caller:
                raise ConfigurationError(
                    f"{setting}: callers {keys[digest]!r} and {caller!r} share a key"
                )
    if not table:
        raise ConfigurationError(f"{setting}: names no caller, so every call would be rejected")
    return Keys(keys, frozenset(table))


def _where(error: Exception) -> str:
    """The number of the line, or the problem, without its content."""
    if "overwrite" in str(error):
        return ": a caller may occur once; give it a list of its hashes"
    found = re.search(r"\(at line (\d+)", str(error))
    if found:
        return f" in line {found[1]}"
    return " at its end" if "(at end of document)" in str(error) else ""
