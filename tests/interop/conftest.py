"""The servers that programs call, and `protoc`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc
import pytest
from support.keys import keys_toml
from support.pki import Authority
from support.programs import ROOT, WORK, Served
from support.serving import RunningServer, write_config

FLAGS: Final = ("--builtin-encodings", "cl100k_base,o200k_base", "--reflection", "true")
KEY: Final = "secret-of-a-test"


@pytest.fixture(scope="session")
def protoc() -> None:
    """Provide `protoc` in the path, from the pinned grpcio-tools."""
    program = WORK / "bin/protoc"
    program.parent.mkdir(parents=True, exist_ok=True)
    python = ROOT / "build/proto/bin/python"
    program.write_text(f'#!/bin/sh\nexec "{python}" -m grpc_tools.protoc "$@"\n')
    program.chmod(0o755)


@pytest.fixture(scope="session")
def plain() -> Iterator[Served]:
    """A server without TLS or keys that serves reflection."""
    with RunningServer(*FLAGS) as server:
        yield Served(server.target, {"BYTEPAIR_TARGET": server.target})


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with TLS and an API key."""
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority()
    authority.server().write(folder)
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "keys.toml").write_text(keys_toml(tester=KEY))
    files = {"tls-cert-file": "server.pem", "tls-key-file": "key.pem", "api-keys-file": "keys.toml"}
    flags = [part for name, file in files.items() for part in (f"--{name}", str(folder / file))]
    credentials = grpc.ssl_channel_credentials(authority.pem)
    with RunningServer(*FLAGS, *flags, credentials=credentials) as server:
        target = server.target.replace("127.0.0.1", "localhost")
        variables = {
            "BYTEPAIR_TARGET": target,
            "BYTEPAIR_TLS_CA": str(folder / "ca.pem"),
            "BYTEPAIR_API_KEY": KEY,
        }
        yield Served(target, variables)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Served]:
    """A server that answers one call in 50 seconds."""
    config = write_config(
        tmp_path, "[quotas.default]\nrequests_per_second = 0.02\nrequest_burst = 1\n"
    )
    with RunningServer(*FLAGS, "--config", config) as server:
        yield Served(server.target, {"BYTEPAIR_TARGET": server.target})
