"""What gRPC is told before it is loaded, and that it listens."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
from support.serving import RunningServer, clean_environment

#: gRPC names an experiment that it does not know, which shows that it was told of it.
UNKNOWN = "Unknown experiment: no_such_thing"
START = """
import sys
from bytepair_server import cli
from bytepair_server.workers import environment
assert "grpc" not in sys.modules
environment.GRPC_EXPERIMENTS = "-no_such_thing"
sys.argv = ["bytepair-server", "--check-config", "--builtin-encodings", "r50k_base"]
sys.argv += ["--allow-reference-backend"]
sys.exit(cli.main())
"""


@pytest.mark.parametrize("own", [None, "", "-no_such_thing"])
def test_grpc_is_told_unless_the_operator_says_otherwise(own: str | None) -> None:
    environment = clean_environment(GRPC_VERBOSITY="ERROR")
    environment.pop("GRPC_EXPERIMENTS", None)
    if own is not None:
        environment["GRPC_EXPERIMENTS"] = own
    ended = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True
    )
    assert (UNKNOWN in ended.stderr) is (own != "")


def test_the_grpc_that_is_installed_knows_what_it_is_told() -> None:
    with RunningServer(environment={"GRPC_VERBOSITY": "ERROR"}) as server:
        assert "Unknown experiment" not in server.raw_log


#: Threads that allocate at the same time what Python's own allocator leaves to C's. A heap of a
#: thread's own begins at a multiple of 64 MiB.
ARENAS = """
import threading
from pathlib import Path
from bytepair_server.workers import environment
environment.prepare()
meet = threading.Barrier(8)
def work():
    meet.wait()
    kept = [bytearray(2000) for _ in range(2000)]
    meet.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
starts = [int(line[0].partition("-")[0], 16) for line in lines if len(line) == 5]
print(sum(start % (64 << 20) == 0 for start in starts))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
@pytest.mark.parametrize(("own", "one"), [(None, True), ("8", False)])
def test_threads_share_one_heap_unless_the_operator_says_otherwise(
    own: str | None, one: bool
) -> None:
    environment = clean_environment()
    for name in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        environment.pop(name, None)
    if own is not None:
        environment["MALLOC_ARENA_MAX"] = own
    ended = subprocess.run(
        [sys.executable, "-c", ARENAS], env=environment, capture_output=True, text=True, check=True
    )
    assert (int(ended.stdout) == 0) is one
