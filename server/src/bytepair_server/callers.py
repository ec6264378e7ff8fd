"""Who calls: the API keys of the operator's file, or nobody in particular.

The file holds, for each caller, the hashes of its keys (several, so that keys can be
exchanged without a gap):

    billing = ["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bytepair_server.errors import Unauthenticated
from bytepair_server.sources import ConfigurationError

#: The caller where no keys are configured.
ANONYMOUS: Final = "anonymous"

_SCHEME: Final = "bearer "
_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")


class Callers:
    """The callers that this server knows.

    Args:
        names: Caller by the SHA-256 of each of its keys; empty where anybody may call.
    """

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names: Final = dict(names)

    @property
    def open(self) -> bool:
        """Whether calls need no key."""
        return not self._names

    @property
    def names(self) -> frozenset[str]:
        """Every caller that a call can have."""
        return frozenset(self._names.values()) if self._names else frozenset({ANONYMOUS})

    def authenticate(self, authorization: str | bytes | None) -> str:
        """Find who sends a key.

        Args:
            authorization: The call's `authorization` metadata; None if it has none.
        Returns:
            The caller; ANONYMOUS where no keys are configured.
        Raises:
            Unauthenticated: The key is missing or unknown.
        """
        if not self._names:
            return ANONYMOUS
        if not isinstance(authorization, str) or not authorization.lower().startswith(_SCHEME):
            raise Unauthenticated
        key = authorization[len(_SCHEME) :].strip()
        # A table lookup by the hash is safe against timing: what it compares is the hash,
        # and to learn a prefix of a hash helps nobody to find a key that has it.
        caller = self._names.get(hashlib.sha256(key.encode()).digest())
        if caller is None:
            raise Unauthenticated
        return caller


def load(path: str | None, base_dir: Path) -> Callers:
    """Read the file of API keys.

    Args:
        path: The setting `api_keys_file`; None for no keys.
        base_dir: What a relative path is relative to.
    Raises:
        ConfigurationError: The file is not what it must be. What it holds is never quoted: it
            may be a key that somebody forgot to hash.
    """
    if path is None:
        return Callers({})
    place = f"api_keys_file {path}"
    try:
        table = tomllib.loads((base_dir / path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{place}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ConfigurationError(f"{place}: is not TOML") from None
    names: dict[bytes, str] = {}
    for caller, hashes in table.items():
        if not isinstance(hashes, list) or not hashes:
            raise ConfigurationError(f"{place}: caller {caller!r} needs a list of key hashes")
        for index, entry in enumerate(hashes):
            match = _HASH.fullmatch(entry) if isinstance(entry, str) else None
            if match is None:
                raise ConfigurationError(
                    f"{place}: entry {index} of caller {caller!r} is not 'sha256:' and 64 "
                    "lower-case hexadecimal digits; make one by: printf %s KEY | sha256sum"
                )
            digest = bytes.fromhex(match[1])
            if names.setdefault(digest, caller) != caller:
                raise ConfigurationError(
                    f"{place}: callers {names[digest]!r} and {caller!r} share a key"
                )
    if not names:
        raise ConfigurationError(f"{place}: names no caller, so that nobody could call")
    return Callers(names)
