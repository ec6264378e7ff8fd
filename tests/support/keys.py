"""API keys in tests: the operator's file, and the metadata of a call."""

from __future__ import annotations

import hashlib
from typing import Any


def keys_toml(**callers: str) -> str:
    """Return a file of API keys in which each caller has one key."""
    return "".join(
        f'{name} = ["sha256:{hashlib.sha256(key.encode()).hexdigest()}"]\n'
        for name, key in callers.items()
    )


def with_key(key: str, request_id: str = "") -> dict[str, Any]:
    """Return the options of a call that sends a key, and a request id if given."""
    named = [("x-request-id", request_id)] if request_id else []
    return {"metadata": [("authorization", f"Bearer {key}"), *named]}
