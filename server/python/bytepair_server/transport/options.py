"""What gRPC is told of connections and calls: how many, how large, and for how long."""

from __future__ import annotations

from typing import Final

from bytepair_server.config.settings import Settings

#: A client may ping this often, calls or none: half of what the project's client does.
MIN_PING_INTERVAL_MS: Final = 10_000
#: The server looks for dead connections this often.
KEEPALIVE_MS: Final = 60_000
KEEPALIVE_TIMEOUT_MS: Final = 20_000
#: So many calls of each RPC of which the loop has not yet heard are kept; of more, gRPC ends some
#: by chance, with CANCELLED, and all of twice as many. Its own are 1,000 and 3,000, which callers
#: that all call at once come to; unbounded, a flood of calls took gigabytes.
MAX_UNHEARD_CALLS: Final = 4096
#: What may come of a message before it is asked for, at first: gRPC lets it grow with what the
#: network carries. Without that (`grpc.http2.bdp_probe` 0) one of 100 KB costs an eighth more.
LOOKAHEAD_BYTES: Final = 16 * 1024


def grpc_options(settings: Settings, *, shares_port: bool) -> list[tuple[str, int]]:
    """The arguments of the gRPC server."""
    options = [
        # Two servers on one port would each get some of the calls, unnoticed.
        ("grpc.so_reuseport", int(shares_port)),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        # gRPC's are the least that it refuses.
        ("grpc.max_metadata_size", settings.max_metadata_bytes + 1),
        ("grpc.absolute_max_metadata_size", settings.max_metadata_bytes + 1),
        ("grpc.max_concurrent_streams", settings.max_concurrent_streams),
        ("grpc.http2.lookahead_bytes", LOOKAHEAD_BYTES),
        ("grpc.server.max_pending_requests", MAX_UNHEARD_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", 2 * MAX_UNHEARD_CALLS),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.server_handshake_timeout_ms", int(settings.handshake_seconds * 1000)),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", MIN_PING_INTERVAL_MS),
    ]
    if settings.max_connection_age_seconds:
        age = int(settings.max_connection_age_seconds * 1000)
        options.append(("grpc.max_connection_age_ms", age))
    return options
