"""The options of a client: what each means, its default, and the channel that follows from them."""

from __future__ import annotations

import enum
import json
import math
import os
import platform
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from bytepair.v1 import tokenizer_pb2

from bytepair_client._errors import InvalidOption
from bytepair_client._version import __version__

SERVICE: Final[str] = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"].full_name

DEFAULT_TARGET = "localhost:50051"
DEFAULT_TIMEOUT_S = 10.0
DEFAULT_MAX_ATTEMPTS = 4
MOST_ATTEMPTS = 5  # gRPC quietly lowers anything above to this.
DEFAULT_MAX_UNARY_BYTES = 1024 * 1024  # the server's default of max_input_bytes
BYTES_PER_ID = 4  # an id counts as the English text that it stands for, as in the server's limits
DEFAULT_MAX_REQUEST_BYTES = 64 * 1024 * 1024
DEFAULT_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
DEFAULT_COALESCE = True
DEFAULT_KEEPALIVE_S = 20.0  # the server takes pings every 10 s
KEEPALIVE_TIMEOUT_S = 10.0

RETRY_INITIAL_BACKOFF_S = 0.1
RETRY_MAX_BACKOFF_S = 2.0
RETRY_BACKOFF_MULTIPLIER = 2.0
#: For the channel of streams: `attempts` says why.
NO_RETRIES: Final = ("grpc.enable_retries", 0)
#: UNAVAILABLE may always be tried again, as every call of the service is idempotent: on another
#: server, as round_robin picks the next. So may CANCELLED, with which gRPC ends what reaches a
#: server while it stops (https://github.com/grpc/grpc/issues/41785); a call that its own caller
#: gives up is never tried again. OVERLOADED is not: it asks for less.
RETRIED_CODES: Final = ("UNAVAILABLE", "CANCELLED")

# gRPC's own second would outlast every retry of a call, and two minutes a server's absence.
RECONNECT_INITIAL_BACKOFF_S = 0.1
RECONNECT_MAX_BACKOFF_S = 2.0


class NotGiven(enum.Enum):
    """The type of NOT_GIVEN: an argument that was left out, where None means something else."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = NotGiven.NOT_GIVEN

#: As gRPC over HTTP/2 defines it.
_METADATA_NAME: Final = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True, slots=True, repr=False)
class Tls:
    """How to encrypt, whom to trust and who we are. Each file is PEM: its path, or its bytes.

    Attributes:
        root_certificates: Whom to trust; None for the roots that gRPC ships.
        client_certificate: Our certificate chain, for servers that ask for one.
        client_key: Its private key; needed with `client_certificate`, and only then.
        server_name: The name that the server's certificate must have, where it is not the
            host of the target.
    """

    root_certificates: str | os.PathLike[str] | bytes | None = None
    client_certificate: str | os.PathLike[str] | bytes | None = None
    client_key: str | os.PathLike[str] | bytes | None = None
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files.

        Raises:
            InvalidOption: One cannot be read, the authorities are not in PEM, a certificate comes
                without its key, or (where both are files) with another.
        """
        if (self.client_certificate is None) != (self.client_key is None):
            raise invalid("tls", "client_certificate and client_key need each other")
        roots = _pem("root_certificates", self.root_certificates)
        if roots is not None:
            try:
                # gRPC would fail each call, as if there were no server.
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
                    cadata=roots.decode("ascii", "ignore")
                )
            except (ssl.SSLError, ValueError):
                raise invalid("tls", "root_certificates holds no certificates in PEM") from None
        key = _pem("client_key", self.client_key)
        chain = _pem("client_certificate", self.client_certificate)
        self._check_pair()
        return grpc.ssl_channel_credentials(
            root_certificates=roots, private_key=key, certificate_chain=chain
        )

    def _check_pair(self) -> None:
        chain, key = self.client_certificate, self.client_key
        # The standard library reads them from files only.
        if chain is None or key is None or isinstance(chain, bytes) or isinstance(key, bytes):
            return
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # Without a password of its own, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(chain, key, password=lambda: "")
        except (ssl.SSLError, OSError):
            raise invalid(
                "tls",
                "client_certificate and client_key are not a certificate chain and its key, in PEM "
                "and without a password",
            ) from None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What calls use for what they are not given.

    Attributes:
        encoding: Name or alias; None if each call must name its own.
        expected_fingerprint: Of `encoding`; None if it is not checked.
        timeout: Seconds; None for no deadline.
        max_unary_bytes: What is larger is streamed.
    """

    encoding: str | None
    expected_fingerprint: str | None
    timeout: float | None
    max_unary_bytes: int


def invalid(field: str, problem: str) -> InvalidOption:
    """An InvalidOption that was found before anything was sent."""
    return InvalidOption(f"{field}: {problem}", metadata={"field": field})


def utf8(field: str, value: str) -> str:
    """Return `value` if it can go over the wire.

    Raises:
        InvalidOption: It holds a lone surrogate, as command lines that are not UTF-8 give.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(field, "not UTF-8") from None
    return value


def checked_timeout(timeout: float | None) -> float | None:
    """Return `timeout` if it is None or a positive number of seconds.

    Raises:
        InvalidOption: It is neither.
    """
    if timeout is not None and not 0 < timeout < math.inf:
        raise invalid("timeout", "seconds above 0, or None for no deadline")
    return timeout


def checked_size(field: str, size: int) -> int:
    """Return `size` if it is at least 1.

    Raises:
        InvalidOption: It is not.
    """
    if size < 1:
        raise invalid(field, "at least 1")
    return size


def call_metadata(
    api_key: str | None, metadata: Mapping[str, str] | Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """What every call sends along.

    Raises:
        InvalidOption: The key, or a name or value of the metadata, cannot stand in a header. The
            message shows neither the key nor a value.
    """
    pairs = tuple(metadata.items() if isinstance(metadata, Mapping) else metadata)
    for name, value in pairs:
        if not _METADATA_NAME.fullmatch(name):
            raise invalid("metadata", f"{name!r}: a name has a-z, 0-9, '_', '-' and '.' only")
        if name.endswith("-bin"):
            continue
        if not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise invalid("metadata", f"the value of {name!r} is not printable ASCII")
    if api_key is None:
        return pairs
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise invalid("api_key", "visible ASCII characters without spaces or line ends")
    return (*pairs, ("authorization", f"Bearer {api_key}"))


def service_config(max_attempts: int) -> str:
    """Balancing and retries, in gRPC's own form.

    Args:
        max_attempts: The first attempt included, 1 (no retries) to MOST_ATTEMPTS.
    Raises:
        InvalidOption: It is outside that range.
    """
    if not 1 <= max_attempts <= MOST_ATTEMPTS:
        raise invalid("max_attempts", f"1 (no retries) to {MOST_ATTEMPTS}")
    config: dict[str, object] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if max_attempts > 1:
        retry_policy = {
            "maxAttempts": max_attempts,
            "initialBackoff": f"{RETRY_INITIAL_BACKOFF_S}s",
            "maxBackoff": f"{RETRY_MAX_BACKOFF_S}s",
            "backoffMultiplier": RETRY_BACKOFF_MULTIPLIER,
            "retryableStatusCodes": RETRIED_CODES,
        }
        config["methodConfig"] = [{"name": [{"service": SERVICE}], "retryPolicy": retry_policy}]
    return json.dumps(config)


def channel_arguments(
    *,
    max_attempts: int,
    max_request_bytes: int,
    max_response_bytes: int,
    keepalive: float | None,
    user_agent: str | None,
    server_name: str | None,
) -> list[tuple[str, str | int]]:
    """The arguments of a gRPC channel.

    Raises:
        InvalidOption: One is outside its range.
    """
    checked_size("max_request_bytes", max_request_bytes)
    checked_size("max_response_bytes", max_response_bytes)
    own = f"bytepair-client/{__version__} python/{platform.python_version()}"
    arguments: list[tuple[str, str | int]] = [
        ("grpc.service_config", service_config(max_attempts)),
        ("grpc.initial_reconnect_backoff_ms", round(RECONNECT_INITIAL_BACKOFF_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", round(RECONNECT_MAX_BACKOFF_S * 1000)),
        ("grpc.max_send_message_length", max_request_bytes),
        ("grpc.max_receive_message_length", max_response_bytes),
        ("grpc.primary_user_agent", own if user_agent is None else f"{user_agent} {own}"),
    ]
    if keepalive is not None:
        if not 0 < keepalive < math.inf:
            raise invalid("keepalive", "seconds above 0, or None for no pings")
        arguments += [
            ("grpc.keepalive_time_ms", round(keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            # A ping that measures the connection may stand in for ours; its own limit is a minute.
            ("grpc.http2.ping_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            ("grpc.http2.max_pings_without_data", 0),  # no bound: streams may be idle for long
        ]
    if server_name is not None:
        arguments.append(("grpc.ssl_target_name_override", server_name))
    return arguments


def _pem(name: str, source: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise invalid(f"tls.{name}", f"{os.fspath(source)}: {error.strerror}") from error
