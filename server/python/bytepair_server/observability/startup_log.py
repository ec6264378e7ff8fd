"""The log lines of a start."""

from __future__ import annotations

import sys

from bytepair_engine import can_stream

from bytepair_server import __version__
from bytepair_server.auth import credentials
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.tls import TlsPaths
from bytepair_server.catalog import Catalog
from bytepair_server.config.loader import Configuration
from bytepair_server.config.types import NO_ADDRESS
from bytepair_server.observability import logs
from bytepair_server.observability.startup_message import startup_message, target
from bytepair_server.playground import playground


def log_start(
    log: logs.Log,
    configuration: Configuration,
    known: Callers,
    encrypted: TlsPaths | None,
    loaded: Catalog,
    *,
    grpc_address: str,
    http_address: str,
    workers: int,
) -> None:
    """Log what is served at which address, and what an operator may want to change.

    Args:
        log: The logger.
        configuration: The settings and their source.
        known: The callers.
        encrypted: The TLS files; None for no TLS.
        loaded: The encodings.
        grpc_address: With the port that was bound.
        http_address: With the port that was bound; "" if there is none.
        workers: Number of processes that answer calls.
    """
    settings = configuration.settings
    credentials.log_access(log, grpc_address, known, encrypted)
    for name, why in loaded.failed.items():
        log.error("an encoding is not served: it cannot be loaded", encoding=name, why=why)
    for name, pin in loaded.unpinned.items():
        log.warning(
            "this file is not pinned: add this line, so that a replaced file is rejected",
            encoding=name,
            add=pin,
        )
    for entry in loaded.entries:
        if not can_stream(entry.encoding):
            log.warning(
                "EncodeStream and CountStream reject this encoding: its split pattern is not a "
                "named one",
                encoding=entry.name,
            )
    for variable, meant in configuration.ignored_variables.items():
        log.warning(
            "ignored: this variable names no setting", variable=variable, did_you_mean=meant
        )
    scheme = "http" if encrypted is None else "https"
    page = (
        f"{scheme}://{target(settings, grpc_address)}/" if playground.is_on(settings, known) else ""
    )
    log.info(
        "serving",
        version=__version__,
        grpc_address=grpc_address,
        http_address=http_address or NO_ADDRESS,
        encodings=[entry.name for entry in loaded.entries],
        backends=sorted({entry.encoding.backend for entry in loaded.entries}),
        workers=workers,
        playground=page or "off",
    )
    if settings.log_format == "console":
        sys.stdout.write(startup_message(settings, loaded, grpc_address, http_address, page))
        sys.stdout.flush()
