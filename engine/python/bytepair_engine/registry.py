"""The built-in encodings by name, loaded on first use and cached."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.loading import find_builtin
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, Resources
from bytepair_engine.vocabulary.aliases import ALIASES
from bytepair_engine.vocabulary.builtin import BUILTINS, builtin_table

#: The encodings loaded so far.
LOADED: Final[dict[tuple[str, BackendName, Resources], Encoding]] = {}


def get_encoding(
    name: str,
    *,
    backend: BackendName | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    threads: int = 0,
) -> Encoding:
    """Get a built-in encoding.

    Args:
        name: A name from `list_encodings()`, or a model name that matches `aliases()`.
        backend: "native" or "reference"; None for native if the core is built, else reference.
        cache_bytes: See `resources.Resources`.
        threads: See `resources.Resources`.
    Returns:
        The same object for the same arguments.
    Raises:
        UnknownEncoding: The name is unknown. There is no fallback to a similar name.
        TypeError: The name is not a string.
        InvalidOption: An argument is out of range, or the core is not built.
        VocabularyError: The installed table is not the official one.

    >>> get_encoding("gpt-4o").name
    'o200k_base'
    """
    canonical, _ = find_builtin(name)
    key = canonical, resolve(backend).name, Resources(cache_bytes, threads)
    # If two threads load it, both return the first object.
    return LOADED.get(key) or LOADED.setdefault(key, _load(*key))


def list_encodings() -> list[str]:
    """Return the canonical names of the built-in encodings, sorted."""
    return sorted(BUILTINS)


def aliases() -> Mapping[str, str]:
    """Return the aliases of the built-in encodings, each with the canonical name.

    `*` matches any number of characters. An exact name takes precedence over patterns, and among
    these the one with the most literal characters.
    """
    return MappingProxyType(ALIASES)


def _load(name: str, backend: BackendName, resources: Resources) -> Encoding:
    builtin = BUILTINS[name]
    core = resolve(backend)
    return build_encoding(
        core,
        builtin_table(core, builtin.table),
        name=name,
        pattern=builtin.pattern,
        special_tokens=builtin.special_tokens,
        source="builtin",
        table_source=builtin.table,
        resources=resources,
    )
