"""The addresses that the server listens on, and its errors if it cannot."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.observability import http
from bytepair_server.transport import ports
from conftest import Serve
from support.serving import run_to_end

QUICK = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")


def test_a_unix_socket_is_served(socket_folder: Path, serve: Serve) -> None:
    server = serve("--grpc-address", f"unix:{socket_folder}/grpc.sock")
    assert server.target == f"unix:{socket_folder}/grpc.sock"
    assert server.stub.Count(QUICK).count == 1


def test_two_servers_never_share_a_port(serve: Serve) -> None:
    """With SO_REUSEPORT, gRPC's default, each would silently get some of the calls."""
    server = serve()
    ended = run_to_end("--grpc-address", server.target, "--http-address", "none")
    assert ended.returncode == 2
    said = f"grpc_address {server.target}: cannot listen there: Address already in use"
    assert said in ended.stderr


@pytest.mark.parametrize("prefix", ["unix:", "unix://"])
def test_a_unix_socket_in_use_is_not_taken_over(
    socket_folder: Path, serve: Serve, prefix: str
) -> None:
    """gRPC itself would unlink it, at start and again at the end."""
    path = f"{socket_folder}/grpc.sock"
    server = serve("--grpc-address", f"unix:{path}")
    ended = run_to_end("--grpc-address", f"{prefix}{path}", "--http-address", "none")
    assert ended.returncode == 2
    assert "grpc.sock: cannot listen there: another process does" in ended.stderr
    assert server.stub.Count(QUICK).count == 1


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "grpcio"])
def test_a_unix_socket_never_replaces_another_file(socket_folder: Path, transport: str) -> None:
    file = socket_folder / "file"
    file.write_text("kept")
    flags = ("--grpc-address", f"unix:{file}", "--http-address", "none", "--transport", transport)
    ended = run_to_end(*flags)
    assert ended.returncode == 2
    assert f"unix:{file}: cannot listen there: the file is no socket;" in ended.stderr
    assert file.read_text() == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["grpc-address", "http-address"])
def test_a_port_in_use_is_a_clear_error(setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = {"grpc-address": "127.0.0.1:0", "http-address": "127.0.0.1:0", setting: address}
        ended = run_to_end(
            *(part for flag, value in flags.items() for part in (f"--{flag}", value))
        )
    assert ended.returncode == 2
    name = setting.replace("-", "_")
    assert f"bytepair-server: {name} {address}: cannot listen" in ended.stderr
    assert "Address already in use;" in ended.stderr
    assert f"by --{setting}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_host_that_no_name_can_be_is_a_clear_error() -> None:
    ended = run_to_end("--grpc-address", "127.0.0.1:0", "--http-address", "a..b:0")
    assert ended.returncode == 2
    assert ended.stderr.startswith("bytepair-server: http_address a..b:0: cannot listen: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "said"),
    [([], "No such file or directory"), (["--check-config"], "its folder does not exist")],
)
def test_a_unix_socket_in_a_missing_folder_is_a_clear_error(
    socket_folder: Path, flags: list[str], said: str
) -> None:
    address = f"unix:{socket_folder}/none/grpc.sock"
    ended = run_to_end("--grpc-address", address, "--http-address", "none", *flags)
    assert ended.returncode == 2
    assert f"grpc_address {address}: cannot listen there: {said}; " in ended.stderr


def test_a_check_finds_where_no_unix_socket_can_be_made(socket_folder: Path) -> None:
    file = socket_folder / "file"
    file.touch()
    faults = {"file": "the file is no socket", "file/a": "its folder does not", 108 * "a": "107"}
    for name, said in faults.items():
        with pytest.raises(ConfigurationError, match=said):
            ports.check(f"unix://{socket_folder}/{name}")
    ports.check(f"unix:{socket_folder}/new")
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(f"{socket_folder}/left")
    ports.check(f"unix:{socket_folder}/left")


@pytest.mark.parametrize(
    "listen",
    [
        partial(ports.listen, share=False, unix_socket_mode="0600"),
        ports.reserve,
        http.listen,
    ],
)
def test_without_descriptors_the_error_does_not_ask_for_another_address(
    listen: Callable[[str], socket.socket],
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            listen("127.0.0.1:0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
