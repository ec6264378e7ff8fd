"""The choice of the transport, by the setting `transport` and the address."""

from __future__ import annotations

from typing import Final

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.transport.grpcio import GrpcioTransport
from bytepair_server.transport.interface import Transport

#: The settings that the grpcio transport ignores.
NATIVE_ONLY: Final = frozenset(
    {
        "cors_origins",
        "max_abandoned_per_second",
        "max_buffered_bytes",
        "max_connections_per_address",
    }
)


def choose(name: str, address: str) -> type[Transport]:
    """The class of the transport.

    Args:
        name: "auto", "native" or "grpcio".
        address: `host:port`, or `unix:path`.
    Raises:
        ConfigurationError: "native" is not built for this platform.
    """
    # gRPC's C core sends an authority to Unix sockets that the crate h2 rejects
    # (hyperium/tonic#742), unless the client sets grpc.default_authority.
    if name == "native" or (name == "auto" and not address.startswith("unix:")):
        try:
            from bytepair_server.transport.native import NativeTransport
        except ImportError as error:
            if name == "native":
                raise ConfigurationError(
                    f"transport: native is not built for this platform ({error}); set grpcio"
                ) from None
        else:
            return NativeTransport
    return GrpcioTransport


def name_of(name: str, address: str) -> str:
    """The name of the transport that `choose` returns: "native" or "grpcio".

    Raises:
        ConfigurationError: As `choose`.
    """
    return "grpcio" if choose(name, address) is GrpcioTransport else "native"


def serves_browsers(name: str, address: str) -> bool:
    """Whether browsers can reach an address: the transport is native, on a TCP port.

    Raises:
        ConfigurationError: As `choose`.
    """
    return not address.startswith("unix:") and name_of(name, address) == "native"
