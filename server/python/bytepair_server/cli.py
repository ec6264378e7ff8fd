"""The command `bytepair-server`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command with the arguments of this process.

    Returns:
        The exit status; see `command.run`.
    """
    if "--check-config" not in sys.argv:
        # Without a handler, process 1 of a container ignores the signal. `stop_signals` replaces
        # this one when there is something to drain.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    _open_standard_streams()
    # gRPC's log lines quote bytes of a client, which could forge a line of ours. gRPC reads the
    # variable when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from bytepair_server import command

    return command.run(sys.argv[1:])


def _open_standard_streams() -> None:
    """Open those of the descriptors 0 to 2 that are closed: otherwise a file or a connection would
    get the number, and libuv aborts the process when it closes that."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
