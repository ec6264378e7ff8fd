"""Pickle encodings: built-in ones by name and fingerprint, others by content.

Unpickling returns an encoding that this process already has, also one that it inherited by a
fork. Process pools on Linux thus share the memory of their parent's encodings.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.building import build_encoding, build_pipeline_encoding
from bytepair_engine.encoding import LIVE, Encoding
from bytepair_engine.errors import VocabularyError
from bytepair_engine.extending import ordinary_tokens
from bytepair_engine.registry import LOADED, get_encoding

#: Number of rebuilt encodings that a process caches: each task of a pool carries its own pickle.
_MAX_REBUILT: Final = 8

_contents: Final[WeakKeyDictionary[Encoding, bytes]] = WeakKeyDictionary()


def reduced(encoding: Encoding) -> tuple[Callable[..., Encoding], tuple[Any, ...]]:
    """Return the value of `Encoding.__reduce__`."""
    if LOADED.get((encoding.name, encoding.backend, encoding.resources)) is encoding:
        return _builtin, (
            encoding.name,
            encoding.fingerprint,
            encoding.backend,
            encoding.resources.cache_bytes,
            encoding.resources.threads,
        )
    content = _contents.get(encoding)
    if content is None:
        content = _contents[encoding] = pickle.dumps(_content(encoding))
    return _of_content, (encoding._identity, content)


def _content(encoding: Encoding) -> dict[str, Any]:
    shared = {"name": encoding.name, "source": encoding.source, "resources": encoding.resources}
    if encoding.pipeline is not None:
        return {"core": encoding.backend, "pipeline": encoding.pipeline, "keys": shared}
    shared |= {
        "pattern": encoding.pattern,
        "special_tokens": dict(encoding.special_tokens),
        "table_source": encoding.name,
        "template": encoding.template,
    }
    return {"core": encoding.backend, "items": ordinary_tokens(encoding), "keys": shared}


def _builtin(
    name: str, fingerprint: str, backend: BackendName, cache_bytes: int, threads: int
) -> Encoding:
    encoding = get_encoding(name, backend=backend, cache_bytes=cache_bytes, threads=threads)
    if encoding.fingerprint != fingerprint:
        raise VocabularyError(
            f"encoding {name!r}",
            f"it has the fingerprint {encoding.fingerprint} here, and {fingerprint} in the pickle",
            "install the same version of bytepair-engine on both sides",
        )
    return encoding


def _of_content(identity: bytes, content: bytes) -> Encoding:
    return LIVE.get(identity) or _rebuilt(identity, content)


@lru_cache(_MAX_REBUILT)
def _rebuilt(identity: bytes, content: bytes) -> Encoding:
    parts = pickle.loads(content)
    core = resolve(parts["core"])
    if "pipeline" in parts:
        encoding = build_pipeline_encoding(core, parts["pipeline"], **parts["keys"])
    else:
        encoding = build_encoding(core, core.from_items(parts["items"]), **parts["keys"])
    object.__setattr__(encoding, "_identity", identity)  # so that the sender gets its own back
    LIVE[identity] = encoding
    return encoding
