"""The command `bytepair` and its connection: health, faults, API keys and TLS."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
import trustme
from support.keys import keys_toml
from support.scripted import HeldAnswer, ScriptedServer, details, fail, ok, refusing
from support.serving import RunningServer, write_config
from support.shell import Shell

pytestmark = pytest.mark.slow  # retries take their time


@pytest.fixture
def shell(server: RunningServer, tmp_path: Path) -> Shell:
    (tmp_path / "a.txt").write_bytes(b"Hello, world!")
    (tmp_path / "b.txt").write_bytes(b"one two three")
    return Shell(tmp_path, server.target)


def test_health(shell: Shell, server: RunningServer) -> None:
    assert shell("health") == f"{server.target}: SERVING\n"
    output = json.loads(shell("health", "--json"))
    assert output == {"target": server.target, "status": "SERVING"}


def test_a_server_that_is_not_there(shell: Shell) -> None:
    del shell.variables["BYTEPAIR_TARGET"]
    with refusing() as gone:
        for name in ("count", "encode", "decode", "encodings"):
            shell(name, "--target", gone, status=3, errors="Is the server running?")
        shell("health", "--target", gone, status=1, errors=f"no answer from {gone}")
    with ScriptedServer(fail(grpc.StatusCode.DEADLINE_EXCEEDED)) as slow:
        shell("count", "--target", slow.target, status=3, errors="--timeout")


@pytest.mark.parametrize("reason", ["OVERLOADED", "QUOTA_EXCEEDED"])
def test_an_overloaded_server_and_a_used_up_quota(shell: Shell, reason: str) -> None:
    status = grpc.StatusCode.RESOURCE_EXHAUSTED
    with ScriptedServer(fail(status, "busy", details=details(reason, status, {}))) as server:
        shell("count", "--target", server.target, "a.txt", "b.txt", status=3, errors="busy")
        assert len(server.calls) == 1


def test_an_error_that_ends_the_command_says_what_is_left(shell: Shell) -> None:
    quota, invalid = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT
    for code, reason, status in (
        (quota, "QUOTA_EXCEEDED", 3),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", 3),
        (invalid, "UNKNOWN_ENCODING", 1),
    ):
        failed = fail(code, "why", details=details(reason, code, {}) if reason else None)
        with ScriptedServer(ok, failed) as server:
            count = "count", "--target", server.target
            left = "; stopped at b.txt: 2 of 4 inputs not done\n"
            output = shell(*count, "a.txt", "gone", "b.txt", "a.txt", status=status, errors=left)
            assert output == f"{7:9} a.txt\n"
            with shell.start(*count, "b.txt") as running:  # alone: nothing else is left
                assert b"stopped" not in running.communicate()[1]


def test_waiting_for_a_quota(shell: Shell) -> None:
    (shell.folder / "keys.toml").write_text(keys_toml(job="secret", once="another"))
    config = """
    api_keys_file = "keys.toml"
    builtin_encodings = ["o200k_base"]
    [quotas.job]
    requests_per_second = 0.5
    request_burst = 2
    [quotas.once]
    requests_per_second = 0.001
    request_burst = 2
    """
    shell.variables["BYTEPAIR_API_KEY"] = "another"
    with RunningServer("--config", write_config(shell.folder, config)) as server:
        count = "count", "--target", server.target, *["b.txt"] * 3
        left = "; stopped at b.txt: 1 of 3 inputs not done\n"
        assert shell(*count, status=3, errors=left) == f"{3:9} b.txt\n" * 2
        shell.variables["BYTEPAIR_API_KEY"] = "secret"
        output = shell(*count, "--wait-for-quota")
        assert output == f"{3:9} b.txt\n" * 3 + f"{9:9} total\n"


def test_an_api_key_comes_from_a_file_or_a_variable(shell: Shell) -> None:
    (shell.folder / "key").write_text("from-file\n")
    with ScriptedServer() as server:
        shell.variables["BYTEPAIR_TARGET"] = server.target
        shell("count", "--api-key-file", "key")
        shell.variables["BYTEPAIR_API_KEY"] = "from-variable"
        shell("count")
        assert [call["authorization"] for call in server.metadata] == (
            ["Bearer from-file", "Bearer from-variable"]
        )
        shell("count", "--api-key-file", "nowhere", status=2, errors="--api-key-file: nowhere: No")
        (shell.folder / "key").write_text("two words")
        shell("count", "--api-key-file", "key", status=2, errors="it has several words")
        (shell.folder / "key").write_text("\n")
        shell("count", "--api-key-file", "key", status=2, errors="key: not an API key: it is empty")
        (shell.folder / "key").write_text("ключ")
        shell("count", "--api-key-file", "key", status=2, errors="--api-key-file: ")
    with ScriptedServer(fail(grpc.StatusCode.UNAUTHENTICATED)) as strict:
        shell("count", "--target", strict.target, status=1, errors="--api-key-file")


def test_tls(shell: Shell) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("tokens.example")
    authority.cert_pem.write_to_path(str(shell.folder / "ca.pem"))
    credentials = grpc.ssl_server_credentials(
        [(issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes())]
    )
    with ScriptedServer(credentials=credentials) as server:
        shell.variables["BYTEPAIR_TARGET"] = server.target
        options = ("--tls-ca", "ca.pem", "--tls-server-name", "tokens.example")
        assert shell("count", *options) == "7\n"
        shell.variables |= {
            "BYTEPAIR_TLS_CA": "ca.pem",
            "BYTEPAIR_TLS_SERVER_NAME": "tokens.example",
        }
        assert shell("count") == "7\n"
        shell(
            "count", "--tls-server-name", "other.example", status=3, errors="--tls-server-name NAME"
        )
        del shell.variables["BYTEPAIR_TLS_CA"], shell.variables["BYTEPAIR_TLS_SERVER_NAME"]
        shell("count", "--tls", status=3, errors="Give the one that did, by --tls-ca FILE")
        shell("count", "--tls-key", "ca.pem", status=2, errors="must be given together")
        (shell.folder / "text.pem").write_text("no certificate")
        shell("count", "--tls-ca", "text.pem", status=2, errors="holds no certificates in PEM")
        shell("count", status=3, errors="uses TLS on this port: give --tls, or --tls-ca FILE")


def test_a_message_that_names_the_remedy_stands_alone(shell: Shell) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", not_after=datetime(2020, 1, 1, tzinfo=UTC))
    authority.cert_pem.write_to_path(str(shell.folder / "ca.pem"))
    credentials = grpc.ssl_server_credentials(
        [(issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes())]
    )
    with ScriptedServer(credentials=credentials) as server:
        shell.variables["BYTEPAIR_TARGET"] = f"localhost:{server.port}"
        with shell.start("count", "--tls-ca", "ca.pem", "a.txt") as running:
            output = running.communicate()[1].decode()
    assert "has expired" in output
    assert "Is the server running?" not in output


def test_a_socket_that_the_user_may_not_open(shell: Shell) -> None:
    """The words are gRPC's. Root, who may run the tests, can open every socket."""
    said = "connect failed: addr: unix:/run/socket error: Permission denied"
    with (
        ScriptedServer(fail(grpc.StatusCode.UNAVAILABLE, said)) as server,
        shell.start("count", "--target", server.target, "a.txt") as running,
    ):
        output = running.communicate()[1].decode()
    assert running.returncode == 3
    assert "see the server's unix_socket_mode" in output
    assert "Is the server running?" not in output


def test_a_server_that_stops_during_the_call(shell: Shell) -> None:
    held = HeldAnswer()
    with (
        ScriptedServer(held) as server,
        shell.start("count", "--target", server.target, "a.txt") as running,
    ):
        held.arrived.wait()
        server.stop()
        output = running.communicate()[1].decode()
    assert running.returncode == 3
    assert f"bytepair: no answer from {server.target}: " in output
    assert "Traceback" not in output
