"""Whether the playground is served, and its files.

`assets/` holds HTML, CSS and ES modules as browsers run them, beside those that come from
`bytepair_engine.web`; there is no build step. Their paths contain a hash of all of them, so that
browsers may keep them for ever and never mix two versions.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Final

from bytepair_engine.web import ASSETS

from bytepair_server.auth.callers import Callers
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.transport.choice import serves_browsers
from bytepair_server.transport.interface import File

_INDEX: Final = "index.html"
#: How the page refers to the folder of its assets, which gets the hash as its name.
_ASSETS: Final = b'"assets/'
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: The page runs its own files and calls its own server. Nothing is inline.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
)
_FOR_EVER: Final = "public, max-age=31536000, immutable"


def is_on(settings: Settings, known: Callers) -> bool:
    """Whether the playground is served, by the setting and by who may call.

    Raises:
        ConfigurationError: It is on, and the transport cannot serve it.
    """
    if settings.playground == "off" or (settings.playground == "auto" and not known.open):
        return False
    if serves_browsers(settings.transport, settings.grpc_address):
        return True
    if settings.playground == "on":
        raise ConfigurationError(
            "playground: on needs the native transport at host:port; set transport native and a "
            "grpc_address of that form, or playground off"
        )
    return False


def files() -> tuple[File, ...]:
    """The page, at "/", and its assets."""
    folder = resources.files(__package__) / "assets"
    contents = dict(ASSETS) | {
        each.name: each.read_bytes()
        for each in sorted(folder.iterdir(), key=lambda each: each.name)
        if each.name.rpartition(".")[2] in _TYPES
    }
    page = contents.pop(_INDEX)
    version = _hash(b"".join(name.encode() + text for name, text in contents.items()))
    page = page.replace(_ASSETS, f'"assets/{version}/'.encode())
    return (
        _file("/", _INDEX, page, "no-cache"),
        *(
            _file(f"/assets/{version}/{name}", name, content, _FOR_EVER)
            for name, content in contents.items()
        ),
    )


def _file(path: str, name: str, content: bytes, cached: str) -> File:
    headers = (
        ("content-type", _TYPES[name.rpartition(".")[2]]),
        ("cache-control", cached),
        ("etag", f'"{_hash(content)}"'),
        *_HEADERS,
    )
    return File(path, headers, content)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
