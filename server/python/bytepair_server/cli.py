"""The command `bytepair-server`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command with the arguments of this process.

    Returns:
        The exit status; see `command.run`.
    """
    # gRPC's log lines quote bytes of a client, which could forge a line of ours. gRPC reads the
    # variable when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from bytepair_server import command

    return command.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
