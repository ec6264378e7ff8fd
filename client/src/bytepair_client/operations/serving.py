"""Whether the server takes work: the standard health service of gRPC."""

from __future__ import annotations

from typing import Any

from bytepair_client.call import Call, Method
from bytepair_client.operations.common import Timeout, chosen_timeout
from bytepair_client.options import NOT_GIVEN, Defaults
from bytepair_client.rpc_status import HealthCheckRequest, HealthCheckResponse

CHECK: Method[Any] = Method("/grpc.health.v1.Health/Check", HealthCheckResponse.FromString)

# grpc.health.v1.HealthCheckResponse.ServingStatus, by number.
_STATES = {1: "SERVING", 2: "NOT_SERVING"}


def health(
    defaults: Defaults, service: str = "", *, timeout: Timeout = NOT_GIVEN
) -> Call[Any, str]:
    """Ask whether the server takes work.

    Args:
        service: A service's full name; "" for the server as a whole.
        timeout: Seconds; None for no deadline.
    Returns:
        "SERVING", or "NOT_SERVING" while the server loads its encodings, verifies them or
        stops; "UNKNOWN" for anything else that it may say.
    Raises:
        RequestRefused: The server has no such service; `code` is "NOT_FOUND".
        TokenizerError: See `bytepair_client.errors`.
    """
    return Call(
        CHECK,
        HealthCheckRequest(service=service),
        chosen_timeout(defaults, timeout),
        lambda response: _STATES.get(response.status, "UNKNOWN"),
    )
