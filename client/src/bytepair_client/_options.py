"""Options of a client: their checks, its gRPC channel, and the cause of a failed connection."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from bytepair_client import __version__
from bytepair_client._arguments import checked_size, invalid, positive, utf8

DEFAULT_TARGET: Final = "localhost:50051"
DEFAULT_TIMEOUT_S: Final = 10.0
#: The waits between six attempts are 0.1, 0.2, 0.4, 0.8 and 1.6 s, about 3 s in all: longer than
#: the maximum wait before gRPC connects again to a restarted server.
DEFAULT_MAX_ATTEMPTS: Final = 6
DEFAULT_MAX_UNARY_BYTES: Final = 1024 * 1024  # the server's default of max_input_bytes
DEFAULT_MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
DEFAULT_MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
DEFAULT_KEEPALIVE_S: Final = 20.0  # the server accepts pings every 10 s
KEEPALIVE_TIMEOUT_S = 10.0
# gRPC's defaults, 1 s and 120 s, are longer than the retries of a call and than a server restart.
RECONNECT_INITIAL_BACKOFF_S: Final = 0.1
RECONNECT_MAX_BACKOFF_S: Final = 2.0

#: A path or a URL.
_NO_TARGET: Final = re.compile(r"|/.*|(?:grpc|http)s?://.*")
_MAX_PORT: Final = 65535
#: A target with a port that may be too large.
_LARGE_PORT: Final = re.compile(r"(?!unix).*:(\d{5,9})")
#: A host or an address in brackets, perhaps with a colon; or an IPv6 address, perhaps with a port:
#: a port there is recognised only by having five digits.
_HOST_ALONE: Final = re.compile(
    r"([^:/\[\]]+|\[[^\[\]]+\]):?|([0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*?)(?::(\d{5}))?"
)

#: From the specification of gRPC over HTTP/2.
_METADATA_NAME: Final = re.compile(r"[a-z0-9_.-]+")

_SERVICE_CONFIG: Final = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})
#: The maximum of gRPC's integers.
_MAX_INT: Final = 2**31 - 1
_PROBE_S: Final = 1.0
_USES_TLS: Final = (
    "the server uses TLS on this port: give tls=True, or tls=Tls(root_certificates=…) if its "
    "certificate authority is private"
)
_NO_TLS: Final = "the server does not use TLS on this port: leave out tls"
_UNTRUSTED: Final = (
    "the server's certificate is not trusted: no trusted root certificate issued it. Give the one "
    "that did, by Tls(root_certificates=…)"
)
_EXPIRED: Final = (
    "by this machine's clock, the server's certificate has expired or is not valid yet: correct "
    "the clock, or have the server's operator replace the certificate"
)
_OTHER_NAME: Final = (
    "the server's certificate is for another name than the target's host: give that name, by "
    "Tls(server_name=…)"
)
#: By OpenSSL's code: CERT_NOT_YET_VALID, CERT_HAS_EXPIRED, HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH.
_NOT_VERIFIED: Final = {9: _EXPIRED, 10: _EXPIRED, 62: _OTHER_NAME, 64: _OTHER_NAME}
#: gRPC says "Socket closed" or "Unwrap failed".
_CLIENT_REJECTED: Final = (
    "the server requires a client certificate: give one that is valid now and that an authority of "
    "the server issued, by Tls(client_certificate=…, client_key=…)"
)
TLS_FAULTS: Final = (_USES_TLS, _NO_TLS, _UNTRUSTED, _EXPIRED, _OTHER_NAME, _CLIENT_REJECTED)
_HOST_AND_PORT: Final = re.compile(r"(?:dns:/*|ipv[46]:)?\[?([\w.:-]+?)\]?:(\d+)")


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
        context.set_alpn_protocols(["h2"])  # some servers close a connection without it
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
        host, missing = bare[1] or f"[{bare[2]}]", "brackets" if bare[3] else "port"
        suffix = bare[3] or DEFAULT_TARGET.partition(":")[2]
        raise invalid("target", f"has no {missing}: write {host}:{suffix}")
    return target


def call_metadata(
    api_key: str | None, metadata: Mapping[str, str] | Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """The metadata of every call. Errors never show the key or a value."""
    try:
        items = metadata.items() if isinstance(metadata, Mapping) else metadata
        pairs = tuple((name, value) for name, value in items)
    except (TypeError, ValueError):
        raise TypeError("metadata must be a mapping, or pairs of a name and a value") from None
    for name, value in pairs:
        if not _METADATA_NAME.fullmatch(utf8("metadata", name, ": each name")):
            raise invalid("metadata", f"the name {name!r} may only have a-z, 0-9, '_', '-' and '.'")
        if name.endswith("-bin"):
            if not isinstance(value, bytes):
                raise invalid("metadata", f"the value of {name!r} is not bytes")
        elif not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise invalid("metadata", f"the value of {name!r} is not printable ASCII")
    if api_key is None:
        return pairs
    utf8("api_key", api_key)
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        hint = "; strip the line end, such as by .strip()" if api_key.endswith("\n") else ""
        raise invalid(
            "api_key", f"must be visible ASCII characters without spaces or line ends{hint}"
        )
    return (*pairs, ("authorization", f"Bearer {api_key}"))


def _pem(name: str, source: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"tls.{name} must be a path or bytes, not {type(source).__name__}")
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise invalid(f"tls.{name}", f"{os.fspath(source)}: {error.strerror}") from error


def channel_arguments(
    target: str,
    tls: Tls | None,
    max_request_bytes: int,
    max_response_bytes: int,
    keepalive: float | None,
    user_agent: str | None,
) -> list[tuple[str, str | int]]:
    """The arguments of a gRPC channel. Raises InvalidOption."""
    checked_size("max_request_bytes", max_request_bytes, most=_MAX_INT)
    checked_size("max_response_bytes", max_response_bytes, most=_MAX_INT)
    if user_agent is not None and not (user_agent.isascii() and user_agent.isprintable()):
        raise invalid("user_agent", "must be printable ASCII, without line ends")
    own = f"bytepair-client/{__version__} python/{platform.python_version()}"
    arguments: list[tuple[str, str | int]] = [
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.enable_retries", 0),  # `_base` says why
        # Otherwise a new client fails while another of the process waits to reconnect.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", round(RECONNECT_INITIAL_BACKOFF_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", round(RECONNECT_MAX_BACKOFF_S * 1000)),
        ("grpc.max_send_message_length", max_request_bytes),
        ("grpc.max_receive_message_length", max_response_bytes),
        ("grpc.primary_user_agent", own if user_agent is None else f"{user_agent} {own}"),
    ]
    positive("keepalive", keepalive, none="no pings", most=_MAX_INT // 1000)
    if keepalive is not None:
        arguments += [
            ("grpc.keepalive_time_ms", round(keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            # A ping that measures the connection may stand in for ours; its own limit is a minute.
            ("grpc.http2.ping_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            ("grpc.http2.max_pings_without_data", 0),  # no bound: streams may be idle for long
        ]
    if tls is not None and tls.server_name is not None:
        name = utf8("tls.server_name", tls.server_name)
        arguments.append(("grpc.ssl_target_name_override", name))
    elif (authority := _authority(target)) is not None:
        arguments.append(("grpc.default_authority", authority))
    return arguments


def _authority(target: str) -> str | None:
    """The authority to send instead of a path or a list of addresses, which servers built on the
    Rust crate h2 reject (hyperium/tonic#742); None for gRPC's default."""
    kind, _, rest = target.partition(":")
    if kind in ("unix", "unix-abstract"):
        return "localhost"
    if kind in ("ipv4", "ipv6") and "," in rest:
        return rest.partition(",")[0]
    return None


def connection_fault(target: str, tls: Tls | None, context: ssl.SSLContext | None) -> str | None:
    """Find the cause of a failed connection by connecting once more, for at most a second.

    gRPC names the error of one address only: for `localhost` often that of ::1, where nothing
    listens.

    `context` trusts the client's root certificates, or if it has none, those of the system; without
    TLS both are None. Returns the cause and its remedy; None if it is unknown, if the connection
    succeeds, or if the target is not a single host and port.
    """
    named = _HOST_AND_PORT.fullmatch(target)
    if named is None:
        return None
    if tls is None or context is None:
        server_name = None
        probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        probe.check_hostname = False
        probe.verify_mode = ssl.CERT_NONE  # nothing is sent; only the handshake matters
    else:
        server_name = tls.server_name
        probe = context
        if not probe.cert_store_stats()["x509_ca"]:
            probe.load_default_certs()
    try:
        with (
            socket.create_connection((named[1], int(named[2])), _PROBE_S) as connection,
            probe.wrap_socket(connection, server_hostname=server_name or named[1]) as stream,
        ):
            if tls is None:
                return _USES_TLS
            # The probe cannot show a client certificate that is not a file.
            if isinstance(tls.client_certificate, bytes) or _is_accepted(stream):
                return None
            return _CLIENT_REJECTED
    except ssl.SSLCertVerificationError as error:
        return _NOT_VERIFIED.get(error.verify_code, _UNTRUSTED)
    except ssl.SSLEOFError:
        return None
    except ssl.SSLError as error:
        uses_tls = "ALERT" in (error.reason or "")  # a TLS alert, such as "certificate required"
        if tls is None:
            return _USES_TLS if uses_tls else None
        return None if uses_tls else _NO_TLS
    except ConnectionRefusedError:
        return "nothing listens there: the connection was refused"
    except socket.gaierror:
        return "the name of the host cannot be resolved"
    except (OSError, ValueError):  # or a name that cannot be that of a host, such as "a..b"
        return None


def _is_accepted(connection: ssl.SSLSocket) -> bool:
    """Whether a server keeps a connection: TLS 1.3 verifies a client's certificate only after the
    client's part of the handshake."""
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        return True
    except (ssl.SSLError, ConnectionError):
        return False
