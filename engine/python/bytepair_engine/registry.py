"""The built-in encodings by name, loaded at first use and then cached."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.loading import find_builtin
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, Resources
from bytepair_engine.vocabulary.aliases import ALIASES
from bytepair_engine.vocabulary.builtin import BUILTINS, builtin_table


def get_encoding(
    name: str,
    *,
    backend: BackendName | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    threads: int = 0,
) -> Encoding:
    """Get a built-in encoding.

    Args:
        name: A name of `list_encodings()`, or a model's that `aliases()` has or has a pattern for.
        backend: "native" or "reference"; None for native where the core is built.
        cache_bytes: See `resources.Resources`.
        threads: See `resources.Resources`.
    Returns:
        The same object at each call with the same arguments.
    Raises:
        UnknownEncoding: There is none of that name; a similar one is never used instead.
        InvalidOption: An argument is out of its range, or the core is not built.
        VocabularyError: The installed table is not the official one.

    >>> get_encoding("gpt-4o").name
    'o200k_base'
    """
    canonical, _ = find_builtin(name)
    return _load(canonical, resolve(backend).name, Resources(cache_bytes, threads))


def list_encodings() -> list[str]:
    """The canonical names of the built-in encodings, sorted."""
    return sorted(BUILTINS)


def aliases() -> Mapping[str, str]:
    """Every other name of a built-in encoding, and the canonical one that it stands for.

    A `*` stands for any characters, or none. Exact names count first, then the pattern with the
    most characters of its own.
    """
    return MappingProxyType(ALIASES)


@cache
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
