"""The report of a started server: log lines, and a message for a person at a terminal."""

from __future__ import annotations

import ipaddress
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bytepair_engine import can_stream

from bytepair_server import __version__
from bytepair_server.auth import tls
from bytepair_server.auth.callers import Callers
from bytepair_server.call import ANONYMOUS
from bytepair_server.catalog import Catalog
from bytepair_server.config.loader import Configuration
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import NO_ADDRESS, split_address
from bytepair_server.observability import logs
from bytepair_server.playground import playground
from bytepair_server.rpc.status import EXAMPLE
from bytepair_server.transport import choice

_MESSAGE: Final = """
bytepair serves {names}
  {protocols}{grpc_address}
  metrics      {http}
{page}{notes}
Try, in another terminal:
  echo 'Hello, world!' | {command} count --target {target} --encoding {encoding}{credentials}
{reflection}
Ctrl-C stops it.
"""
_REFERENCE_NOTE: Final = """
The engine's compiled core is missing: the pure-Python one is used, about a hundred times slower.
"""


@dataclass(frozen=True, slots=True)
class Served:
    """What a server serves.

    Attributes:
        configuration: The settings.
        callers: The callers that it knows.
        catalog: The loaded encodings.
        expiries: When the certificates expire, by setting.
        grpc_address: The address; once it is bound, with its port.
    """

    configuration: Configuration
    callers: Callers
    catalog: Catalog
    expiries: tls.Expiries
    grpc_address: str


def log_start(log: logs.Log, served: Served, *, http_address: str, workers: int) -> None:
    """Log what is served at which address, and what an operator may want to change.

    Args:
        log: The log.
        served: What is served.
        http_address: The bound address of the HTTP port; "" if there is none.
        workers: Number of processes that answer calls.
    """
    warn(log, served)
    settings, loaded = served.configuration.settings, served.catalog
    grpc_address = served.grpc_address
    for name, why in loaded.failed.items():
        log.error("an encoding is not served: it cannot be loaded", encoding=name, why=why)
    is_encrypted = settings.tls_cert_file is not None
    transport = choice.name_of(settings.transport, grpc_address)
    page = ""
    if playground.is_on(settings, served.callers):
        page = f"http{'s' * is_encrypted}://{_target(settings, grpc_address)}/"
    log.info(
        "serving",
        version=__version__,
        grpc_address=grpc_address,
        http_address=http_address or NO_ADDRESS,
        transport=transport,
        tls=is_encrypted,
        encodings=[entry.name for entry in loaded.entries],
        backends=sorted({entry.encoding.backend for entry in loaded.entries}),
        workers=workers,
        playground=page or "off",
    )
    if settings.log_format == "console":
        message = startup_message(settings, loaded, transport, grpc_address, http_address, page)
        logs.LossyStream(sys.stdout).write(message)


def warn(log: logs.Log, served: Served) -> None:
    """Log what an operator may want to change in a valid configuration."""
    settings, loaded = served.configuration.settings, served.catalog
    known, grpc_address = served.callers, served.grpc_address
    write = log.info if _is_private(grpc_address) else log.warning
    if known.open:
        write(
            "no authentication is configured: anyone who can reach the port may call",
            caller=ANONYMOUS,
            grpc_address=grpc_address,
        )
    elif settings.tls_cert_file is None:
        write("no TLS: API keys and text can be read on the network", grpc_address=grpc_address)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit < settings.needed_descriptors:
        log.warning(
            "too few file descriptors for max_connections: raise the limit (ulimit -n, "
            "LimitNOFILE), or lower max_connections",
            limit=limit,
            needed=settings.needed_descriptors,
        )
    warn_of_no_keys(log, known)
    warn_of_expiry(log, served.expiries)
    for name, pin in loaded.unpinned.items():
        log.warning(
            "this file is not pinned: add this line, so that a replaced file is rejected",
            encoding=name,
            add=pin,
        )
    for entry in loaded.entries:
        if not can_stream(entry.encoding):
            log.warning(
                "EncodeStream, CountStream and SplitStream reject this encoding: no points are "
                "known where its text can be split",
                encoding=entry.name,
            )
    for variable, reason in served.configuration.ignored_variables.items():
        log.warning("a variable is ignored", variable=variable, reason=reason)
    if choice.name_of(settings.transport, grpc_address) == "grpcio":
        for setting in sorted(settings.model_fields_set & choice.NATIVE_ONLY):
            log.warning("a setting is ignored: the grpcio transport lacks it", setting=setting)


def warn_of_no_keys(log: logs.Log, known: Callers) -> None:
    """Log a warning if no caller has a key any more."""
    if known.is_closed:
        log.warning("no caller has an API key: every call is rejected")


def warn_of_expiry(log: logs.Log, expiries: tls.Expiries) -> None:
    """Log a warning for each setting whose certificate expires soon."""
    for setting, when in tls.soon(expiries).items():
        log.warning("a TLS certificate expires soon: replace it", setting=setting, expires=when)


def startup_message(
    settings: Settings,
    catalog: Catalog,
    transport: str,
    grpc_address: str,
    http_address: str,
    page: str,
) -> str:
    """The message for the console; see `log_start`. `transport` is "native" or "grpcio", and `page`
    the address of the playground; "" if it is off."""
    target, credentials, how = _target(settings, grpc_address), "", "-plaintext"
    if settings.api_keys_file is not None:
        credentials += " --api-key-file KEY"
    if settings.tls_cert_file is not None:
        credentials += " --tls-ca CA.pem"
        how = "-cacert CA.pem"
    if settings.tls_client_ca_file is not None:
        credentials += " --tls-cert CERTIFICATE.pem --tls-key KEY.pem"
        how += " -cert CERTIFICATE.pem -key KEY.pem"
    served = {name for entry in catalog.entries for name in (entry.name, *entry.aliases)}
    return _MESSAGE.format(
        names=", ".join(entry.name for entry in catalog.entries),
        protocols="gRPC, JSON   " if transport == "native" else "gRPC         ",
        grpc_address=grpc_address,
        http=f"http://{http_address}/metrics, /healthz, /readyz" if http_address else "none",
        page=f"  page         {page} shows tokens in a browser\n" if page else "",
        notes="" if catalog.all_native else _REFERENCE_NOTE,
        command=_command(),
        target=target,
        encoding=EXAMPLE if EXAMPLE in served else catalog.entries[-1].name,
        credentials=credentials,
        reflection=f"  grpcurl {how} {target} list bytepair.v1.TokenizerService\n"
        if settings.reflection
        else "",
    )


def _is_private(address: str) -> bool:
    """Whether only this machine can reach an address: a Unix socket, or loopback."""
    if address.startswith("unix:"):
        return True
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _target(settings: Settings, grpc_address: str) -> str:
    """The address for a client on this machine: localhost where the server listens on all
    interfaces, or on loopback with TLS, whose certificates usually hold names."""
    host, colon, port = grpc_address.rpartition(":")
    is_encrypted = settings.tls_cert_file is not None
    is_localhost = host in ("0.0.0.0", "[::]") or (is_encrypted and host in ("127.0.0.1", "[::1]"))
    return f"localhost:{port}" if is_localhost else f"{host}{colon}{port}"


def _command() -> str:
    """The client's command from another terminal: its path if the virtualenv is not activated."""
    beside = Path(sys.executable).with_name("bytepair")
    return str(beside) if not shutil.which("bytepair") and beside.exists() else "bytepair"
