"""Targets whose authority is not a host name."""

from __future__ import annotations

from pathlib import Path

from bytepair_client import TokenizerClient
from conftest import Serve


def test_a_list_of_addresses_and_a_unix_socket_are_served(serve: Serve, tmp_path: Path) -> None:
    server = serve("--transport", "native")
    with TokenizerClient(f"ipv4:{server.target},{server.target}") as client:
        assert client.count("hello world", encoding="cl100k_base") == 2
    socket = f"unix:{tmp_path}/s"
    serve("--transport", "native", "--grpc-address", socket)
    with TokenizerClient(socket) as client:
        assert client.count("hello world", encoding="cl100k_base") == 2
