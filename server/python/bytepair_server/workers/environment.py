"""What the C libraries below are told before they are loaded. docs/server-shape.md has the figures.

An operator's own variable of the same name wins, also an empty one.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

#: gRPC's newer way to listen costs a tenth more for each small request, and half as much again for
#: large ones. To be measured again with each new version of grpcio: `make bench-service`.
GRPC_EXPERIMENTS: Final = "-event_engine_listener"

#: gRPC's lines quote what a client sent, byte by byte, even those of level ERROR (the server name
#: of a TLS handshake), so that anybody could write what looks like a line of ours, and as many as
#: he likes.
GRPC_VERBOSITY: Final = "NONE"

#: glibc gives threads heaps of their own, and keeps of each the most that it ever held: with gRPC's
#: threads a server's memory grows with every flood that it has seen. One heap is given back.
MALLOC_ARENAS: Final = 1
#: `M_ARENA_MAX` of <malloc.h>.
_ARENA_MAX: Final = -8


def prepare() -> None:
    """Set what is read only once. gRPC must not be imported yet, and no thread be started."""
    os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)
    os.environ.setdefault("GRPC_VERBOSITY", GRPC_VERBOSITY)
    if not {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"} & os.environ.keys():
        _set_arenas()


def _set_arenas() -> None:
    """By a call: the variable was read before Python began."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have no arenas
        mallopt(_ARENA_MAX, MALLOC_ARENAS)
