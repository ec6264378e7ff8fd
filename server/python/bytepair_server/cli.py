"""The command `bytepair-server`: prepares the process, then does what it was called for."""

from __future__ import annotations

import sys

from bytepair_server.workers import environment


def main() -> int:
    """Run the command with the arguments of this process.

    Returns:
        The exit status; see `command.run`.
    """
    environment.prepare()
    # Not before: what is prepared is read when gRPC is imported.
    from bytepair_server import command

    return command.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
