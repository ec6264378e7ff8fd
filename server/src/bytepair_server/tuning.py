"""What the C libraries below are told before they are loaded. docs/server-shape.md has the figures.

An operator's own variable of the same name wins, also an empty one.
"""

from __future__ import annotations

import os
from typing import Final

#: gRPC's newer way to listen costs a tenth more for each small request, and half as much again for
#: large ones. To be measured again with each new version of grpcio: `make bench-service`.
GRPC_EXPERIMENTS: Final = "-event_engine_listener"

#: Not "INFO", gRPC's own: those lines quote what a client sent, byte by byte, so that anybody
#: could write what looks like a line of ours.
GRPC_VERBOSITY: Final = "ERROR"


def prepare() -> None:
    """Set what is read only once. gRPC must not be imported yet."""
    os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)
    os.environ.setdefault("GRPC_VERBOSITY", GRPC_VERBOSITY)
