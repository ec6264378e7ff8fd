"""The gRPC channel of a client, and the cause of a failed connection."""

from __future__ import annotations

import json
import platform
import re
import socket
import ssl
from typing import Final

from bytepair_client import __version__
from bytepair_client import _options as options

KEEPALIVE_TIMEOUT_S = 10.0
# gRPC's defaults, 1 s and 120 s, are longer than the retries of a call and than a server restart.
RECONNECT_INITIAL_BACKOFF_S: Final = 0.1
RECONNECT_MAX_BACKOFF_S: Final = 2.0

_SERVICE_CONFIG: Final = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})
#: The maximum of gRPC's integers.
_MAX_INT: Final = 2**31 - 1
_PROBE_S: Final = 1.0
#: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL.
_NAME_MISMATCHES: Final = (62, 64)
_USES_TLS: Final = (
    "the server uses TLS on this port: give tls=True, or tls=Tls(root_certificates=…) if its "
    "certificate authority is private"
)
_NO_TLS: Final = "the server does not use TLS on this port: leave out tls"
_UNTRUSTED: Final = (
    "the server's certificate is not trusted: no trusted root certificate issued it. Give the one "
    "that did, by Tls(root_certificates=…)"
)
_OTHER_NAME: Final = (
    "the server's certificate is for another name than the target's host: give that name, by "
    "Tls(server_name=…)"
)
#: gRPC says "Socket closed".
CLOSED: Final = (
    "the server closed the connection. If it requires a client certificate, give one by "
    "Tls(client_certificate=…, client_key=…)"
)
_HOST_AND_PORT: Final = re.compile(r"(?:dns:/*|ipv[46]:)?\[?([\w.:-]+?)\]?:(\d+)")


def channel_arguments(
    target: str,
    server_name: str | None,
    max_request_bytes: int,
    max_response_bytes: int,
    keepalive: float | None,
    user_agent: str | None,
) -> list[tuple[str, str | int]]:
    """The arguments of a gRPC channel. Raises InvalidOption."""
    options.checked_size("max_request_bytes", max_request_bytes, most=_MAX_INT)
    options.checked_size("max_response_bytes", max_response_bytes, most=_MAX_INT)
    own = f"bytepair-client/{__version__} python/{platform.python_version()}"
    arguments: list[tuple[str, str | int]] = [
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.enable_retries", 0),  # `_base` says why
        ("grpc.initial_reconnect_backoff_ms", round(RECONNECT_INITIAL_BACKOFF_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", round(RECONNECT_MAX_BACKOFF_S * 1000)),
        ("grpc.max_send_message_length", max_request_bytes),
        ("grpc.max_receive_message_length", max_response_bytes),
        ("grpc.primary_user_agent", own if user_agent is None else f"{user_agent} {own}"),
    ]
    options.positive("keepalive", keepalive, none="no pings", most=_MAX_INT // 1000)
    if keepalive is not None:
        arguments += [
            ("grpc.keepalive_time_ms", round(keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            # A ping that measures the connection may stand in for ours; its own limit is a minute.
            ("grpc.http2.ping_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
            ("grpc.http2.max_pings_without_data", 0),  # no bound: streams may be idle for long
        ]
    if server_name is not None:
        arguments.append(("grpc.ssl_target_name_override", server_name))
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


def connection_fault(
    target: str, context: ssl.SSLContext | None, server_name: str | None
) -> str | None:
    """Find the cause of a failed connection by connecting once more, for at most a second.

    gRPC names the error of one address only: for `localhost` often that of ::1, where nothing
    listens.

    Args:
        target: The client's target.
        context: Trusts the client's root certificates, or if it has none, those of the system. None
            without TLS.
        server_name: The expected name in the certificate; None for the target's host.
    Returns:
        The cause and its remedy; None if it is unknown, if the connection succeeds, or if the
        target is not a single host and port.
    """
    named = _HOST_AND_PORT.fullmatch(target)
    if named is None:
        return None
    if context is None:
        probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        probe.check_hostname = False
        probe.verify_mode = ssl.CERT_NONE  # nothing is sent; only the handshake matters
    else:
        probe = context
        if not probe.cert_store_stats()["x509_ca"]:
            probe.load_default_certs()
    try:
        with (
            socket.create_connection((named[1], int(named[2])), _PROBE_S) as connection,
            probe.wrap_socket(connection, server_hostname=server_name or named[1]),
        ):
            return _USES_TLS if context is None else None
    except ssl.SSLCertVerificationError as error:
        return _OTHER_NAME if error.verify_code in _NAME_MISMATCHES else _UNTRUSTED
    except ssl.SSLEOFError:
        return None
    except ssl.SSLError as error:
        uses_tls = "ALERT" in (error.reason or "")  # a TLS alert, such as "certificate required"
        if context is None:
            return _USES_TLS if uses_tls else None
        return None if uses_tls else _NO_TLS
    except ConnectionRefusedError:
        return "nothing listens there: the connection was refused"
    except OSError:
        return None
