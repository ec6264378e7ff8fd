"""What gRPC is told before it is loaded, and that it listens."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Serve
from support.serving import clean_environment

#: gRPC names an experiment that it does not know, which shows that it was told of it.
UNKNOWN = "Unknown experiment: no_such_thing"
START = """
import sys
from bytepair_server import cli, tuning
assert "grpc" not in sys.modules
tuning.GRPC_EXPERIMENTS = "-no_such_thing"
sys.argv = ["bytepair-server", "--check-config", "--builtin-encodings", "r50k_base"]
sys.argv += ["--allow-reference-backend"]
sys.exit(cli.main())
"""


@pytest.mark.parametrize("own", [None, "", "-no_such_thing"])
def test_grpc_is_told_unless_the_operator_says_otherwise(own: str | None) -> None:
    environment = clean_environment()
    environment.pop("GRPC_EXPERIMENTS", None)
    if own is not None:
        environment["GRPC_EXPERIMENTS"] = own
    ended = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True
    )
    assert (UNKNOWN in ended.stderr) is (own != "")


def test_the_grpc_that_is_installed_knows_what_it_is_told(serve: Serve) -> None:
    assert "Unknown experiment" not in serve().raw_log
