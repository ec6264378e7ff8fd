"""Options of a client and of a call, and their checks, which raise InvalidOption."""

from __future__ import annotations

import enum
import math
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from bytepair_client._errors import InvalidOption

DEFAULT_TARGET: Final = "localhost:50051"
DEFAULT_TIMEOUT_S: Final = 10.0
#: The waits between six attempts are 0.1, 0.2, 0.4, 0.8 and 1.6 s, about 3 s in all: longer than
#: the maximum wait before gRPC connects again to a restarted server.
DEFAULT_MAX_ATTEMPTS: Final = 6
DEFAULT_MAX_UNARY_BYTES: Final = 1024 * 1024  # the server's default of max_input_bytes
BYTES_PER_ID: Final = 4  # as the server counts them: an average token of English text
DEFAULT_MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
DEFAULT_MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
DEFAULT_KEEPALIVE_S: Final = 20.0  # the server accepts pings every 10 s


class NotGiven(enum.Enum):
    """The type of NOT_GIVEN, the default of arguments for which None has another meaning."""

    NOT_GIVEN = "<client's default>"

    def __repr__(self) -> str:
        return self.value


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
Timeout = float | None | NotGiven
Fingerprint = str | None | NotGiven

#: A path or a URL.
_NO_TARGET: Final = re.compile(r"|/.*|(?:grpc|http)s?://.*")
_MAX_PORT: Final = 65535
#: A target with a port that may be too large.
_LARGE_PORT: Final = re.compile(r"(?!unix).*:(\d{5,9})")
#: A host or an address in brackets, perhaps with a colon; or an IPv6 address, perhaps with a port.
_HOST_ALONE: Final = re.compile(
    r"([^:/\[\]]+|\[[^\[\]]+\]):?|([0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)"
)

#: From the specification of gRPC over HTTP/2.
_METADATA_NAME: Final = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True, slots=True, repr=False)
class Tls:
    """Certificates for TLS, each PEM: the path of a file, or its content in bytes.

    Attributes:
        root_certificates: The root certificates to trust; None for those that gRPC ships.
        client_certificate: The client's certificate chain, for servers that require one.
        client_key: The private key of `client_certificate`; given if and only if that is.
        server_name: The expected name in the server's certificate; None for the target's host.
    """

    root_certificates: str | os.PathLike[str] | bytes | None = None
    client_certificate: str | os.PathLike[str] | bytes | None = None
    client_key: str | os.PathLike[str] | bytes | None = None
    server_name: str | None = None

    def load(self) -> tuple[grpc.ChannelCredentials, ssl.SSLContext]:
        """Read the files.

        Returns:
            gRPC's credentials; and a context that trusts `root_certificates`, or none if that is
            None, and shows the client certificate if it is a file.
        Raises:
            InvalidOption: A file cannot be read, the root certificates are not PEM, or the client
                certificate and its key do not belong together.
        """
        if (self.client_certificate is None) != (self.client_key is None):
            raise invalid("tls", "client_certificate and client_key must be given together")
        roots = _pem("root_certificates", self.root_certificates)
        key = _pem("client_key", self.client_key)
        chain = _pem("client_certificate", self.client_certificate)
        credentials = grpc.ssl_channel_credentials(roots, key, chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if roots is not None:  # gRPC would report invalid ones as an unavailable server
                context.load_verify_locations(cadata=roots.decode("ascii", "ignore"))
        except (ssl.SSLError, ValueError):
            raise invalid("tls", "root_certificates holds no certificates in PEM") from None
        certificate, private = self.client_certificate, self.client_key
        # The standard library can only load files.
        if isinstance(certificate, str | os.PathLike) and isinstance(private, str | os.PathLike):
            try:
                # Without `password`, OpenSSL would prompt for one at the terminal.
                context.load_cert_chain(certificate, private, password=lambda: "")
            except (ssl.SSLError, OSError):
                raise invalid(
                    "tls",
                    "client_certificate and client_key are not a certificate chain and its key, in "
                    "PEM and without a password",
                ) from None
        return credentials, context


@dataclass(frozen=True, slots=True)
class Defaults:
    """The client's defaults for arguments of its methods."""

    encoding: str | None  # None if each call must name one
    expected_fingerprint: str | None  # of `encoding`; None for any
    timeout: float | None  # seconds; None for no deadline
    max_unary_bytes: int  # larger inputs are streamed


def invalid(field: str, problem: str) -> InvalidOption:
    """An InvalidOption that the client raises before it sends anything."""
    return InvalidOption(f"{field}: {problem}", metadata={"field": field})


def utf8(field: str, value: str) -> str:
    """Return `value`.

    Raises:
        TypeError: It is not a str.
        InvalidOption: It holds a lone surrogate, as arguments of a command may.
    """
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(field, "not UTF-8") from None
    return value


def checked_target(target: str) -> str:
    """Return `target`. Raises InvalidOption if gRPC would look up another name, or use another
    port."""
    utf8("target", target)
    port = _LARGE_PORT.fullmatch(target)
    if _NO_TARGET.fullmatch(target) or (port is not None and int(port[1]) > _MAX_PORT):
        raise invalid(
            "target",
            f"must be host:port, such as {DEFAULT_TARGET}, with a port of at most {_MAX_PORT}; or "
            f"unix:path; not {target!r}",
        )
    bare = _HOST_ALONE.fullmatch(target)
    if bare is not None:
        host = bare[1] or f"[{bare[2]}]"
        raise invalid("target", f"has no port: write {host}:{DEFAULT_TARGET.partition(':')[2]}")
    return target


def positive(field: str, value: float | None, *, none: str, most: float = 1e9) -> float | None:
    """Return `value` if it is positive and at most `most`, or None. `none` says in the error what
    None means. gRPC takes a deadline in some hundred years for one that has passed."""
    if not isinstance(value, int | float | None):
        raise TypeError(f"{field} must be a number or None, not {type(value).__name__}")
    if value is not None and not 0 < value <= most:
        raise invalid(field, f"must be a number above 0 and at most {most:.0f}, or None for {none}")
    return value


def checked_timeout(timeout: float | None) -> float | None:
    """Return `timeout` if it is None or a positive number of seconds."""
    return positive("timeout", timeout, none="no deadline")


def chosen_timeout(default: float | None, timeout: Timeout) -> float | None:
    """The timeout of a call or a whole stream in seconds; None for no deadline."""
    return default if timeout is NOT_GIVEN else checked_timeout(timeout)


def checked_size(field: str, size: int, *, most: float = math.inf) -> int:
    """Return `size` if it is at least 1 and at most `most`."""
    if not isinstance(size, int):
        raise TypeError(f"{field} must be an int, not {type(size).__name__}")
    if size < 1:
        raise invalid(field, "must be at least 1")
    if size > most:
        raise invalid(field, f"must be at most {most}")
    return size


def call_metadata(
    api_key: str | None, metadata: Mapping[str, str] | Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """The metadata of every call. Errors never show the key or a value."""
    pairs = tuple(metadata.items() if isinstance(metadata, Mapping) else metadata)
    for name, value in pairs:
        if not _METADATA_NAME.fullmatch(name):
            raise invalid("metadata", f"the name {name!r} may only have a-z, 0-9, '_', '-' and '.'")
        if name.endswith("-bin"):
            continue
        if not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise invalid("metadata", f"the value of {name!r} is not printable ASCII")
    if api_key is None:
        return pairs
    utf8("api_key", api_key)
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise invalid("api_key", "must be visible ASCII characters without spaces or line ends")
    return (*pairs, ("authorization", f"Bearer {api_key}"))


def _pem(name: str, source: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise invalid(f"tls.{name}", f"{os.fspath(source)}: {error.strerror}") from error
