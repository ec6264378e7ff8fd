"""The command `bytepair-server`."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> int:
    """Run the command with the arguments of this process.

    Returns:
        The exit status; see `command.run`.
    """
    _open_standard_streams()
    # gRPC's log lines quote bytes of a client, which could forge a line of ours. gRPC reads the
    # variable when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if is_transport_old(Path(__file__).parent):  # before an import or a call fails
        sys.stderr.write(
            "bytepair-server: the compiled transport is older than server/src: run `make install`\n"
        )
    from bytepair_server import command

    return command.run(sys.argv[1:])


def is_transport_old(package: Path) -> bool:
    """Whether the compiled transport in this folder is older than its sources, as after `git pull`.
    False where there are no sources, as in an image."""
    built = (each.stat().st_mtime for each in package.glob("_transport*.so"))
    sources = (each.stat().st_mtime for each in (package.parents[1] / "src").rglob("*.rs"))
    return max(sources, default=0.0) > max(built, default=float("inf"))


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
