"""The message for a person at a terminal: where the server listens, and what to try next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from bytepair_server.catalog import Catalog
from bytepair_server.config.settings import Settings

#: The encoding of the example, if it is served: a name that people know.
_MODEL: Final = "gpt-4o"
_TEXT: Final = """
bytepair serves {names}
  gRPC   {grpc_address}
  HTTP   {http_address}
{page}{notes}
Try, in another terminal:
  echo 'Hello, world!' | {command} count --target {target} --encoding {encoding}{key}{tls}
{reflection}
Ctrl-C stops it.
"""
_WITH_PAGE: Final = "  page   {page} shows tokens in a browser\n"
_WITH_KEY: Final = " --api-key-file KEY"
_WITH_TLS: Final = " --tls-ca CA.pem"
_WITH_CERTIFICATE: Final = " --tls-cert CERTIFICATE.pem --tls-key KEY.pem"
_WITH_REFLECTION: Final = "  grpcurl {how} {target} list bytepair.v1.TokenizerService\n"
_REFERENCE_NOTE: Final = """
The engine's compiled core is missing: the pure-Python one is used, about a hundred times slower.
"""


def target(settings: Settings, grpc_address: str) -> str:
    """The address for a client on this machine: localhost where the server listens on all
    interfaces, or on loopback with TLS, whose certificates usually hold names."""
    host, colon, port = grpc_address.rpartition(":")
    encrypted = settings.tls_cert_file is not None
    is_localhost = host in ("0.0.0.0", "[::]") or (encrypted and host in ("127.0.0.1", "[::1]"))
    return f"localhost:{port}" if is_localhost else f"{host}{colon}{port}"


def startup_message(
    settings: Settings, catalog: Catalog, grpc_address: str, http_address: str, page: str
) -> str:
    """The block of text for the console.

    Args:
        settings: The server's settings.
        catalog: The encodings that it serves.
        grpc_address: With the port that was bound.
        http_address: With the port that was bound; "" if there is none.
        page: The address of the playground; "" if it is off.
    """
    encrypted = settings.tls_cert_file is not None
    at = target(settings, grpc_address)
    mutual = settings.tls_client_ca_file is not None
    served = {name for entry in catalog.entries for name in (entry.name, *entry.aliases)}
    http = f"http://{http_address}/metrics, /healthz, /readyz" if http_address else "none"
    return _TEXT.format(
        names=", ".join(entry.name for entry in catalog.entries),
        grpc_address=grpc_address,
        http_address=http,
        page=_WITH_PAGE.format(page=page) if page else "",
        target=at,
        command=_command(),
        encoding=_MODEL if _MODEL in served else catalog.entries[-1].name,
        reflection=_WITH_REFLECTION.format(
            target=at,
            how=("-cacert CA.pem" if encrypted else "-plaintext")
            + (" -cert CERTIFICATE.pem -key KEY.pem" if mutual else ""),
        )
        if settings.reflection
        else "",
        key=_WITH_KEY if settings.api_keys_file else "",
        tls=(_WITH_TLS if encrypted else "") + (_WITH_CERTIFICATE if mutual else ""),
        notes="" if catalog.all_native else _REFERENCE_NOTE,
    )


def _command() -> str:
    """The client's command from another terminal: its path if the virtualenv is not activated."""
    if shutil.which("bytepair"):
        return "bytepair"
    beside = Path(sys.executable).with_name("bytepair")
    return str(beside) if beside.exists() else "bytepair"
