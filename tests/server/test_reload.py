"""Keys and certificates that change while the server runs."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.auth.reload import Reloader
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from conftest import Serve
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.check_config import check_config
from support.keys import keys_toml, with_key
from support.pki import Authority, trusting
from support.serving import RunningServer, write_config
from support.workers import TWO, on_linux, workers_of

REQUEST = tokenizer_pb2.CountRequest(encoding="gpt-4", text="a")


def replace(path: Path, content: str | bytes) -> None:
    """Replace a file atomically by another."""
    new = path.with_suffix(".new")
    new.write_bytes(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def is_ok(otherwise: grpc.StatusCode, call: Any, *arguments: Any, **options: Any) -> bool:
    """Return whether a call succeeds; if not, it must fail with this status."""
    code = grpc.StatusCode.OK
    try:
        call(*arguments, **options)
    except grpc.RpcError as error:
        code = error.code()
    assert code in (grpc.StatusCode.OK, otherwise)
    return code is grpc.StatusCode.OK


def takes(server: RunningServer, key: str) -> bool:
    return is_ok(grpc.StatusCode.UNAUTHENTICATED, server.stub.Count, REQUEST, **with_key(key))


def tells_health(server: RunningServer, key: str) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(server.channel)
    request = health_pb2.HealthCheckRequest()
    return is_ok(grpc.StatusCode.UNAUTHENTICATED, stub.Check, request, **with_key(key))


def failed_now(server: RunningServer, what: str) -> float:
    return server.metric("bytepair_reload_failed", what=what)


def wait(server: RunningServer, event: str, times: int) -> dict[str, Any]:
    """Wait until the log has this message this many times."""
    return server.wait_for_log(event, times=times)


NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
YESTERDAY = NOW - datetime.timedelta(days=1)
RELOADED, KEPT = "reloaded", "reload failed: the previous files stay in use"


def test_keys_are_replaced_without_a_restart(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(keys_toml(chat="old"))
    flags = ("--health-needs-caller", "--log-denials")
    server = serve("--api-keys-file", str(file), *flags)
    assert takes(server, "old")
    assert not takes(server, "new")

    replace(file, keys_toml(chat="new", billing="other"))
    assert wait(server, RELOADED, 1)["what"] == "api_keys"
    assert not takes(server, "old")
    assert takes(server, "new")
    assert takes(server, "other")
    assert (tells_health(server, "old"), tells_health(server, "new")) == (False, True)
    said = "this server does not know the API key, which may be mistyped or revoked"
    for rpc in ("health", "Count"):
        assert server.wait_for_log("denied", rpc=rpc)["why"].startswith(said)

    # A key that was not hashed by mistake must not be in the log.
    bad_files = ("chat = ['hunter2']", "no toml: hunter2", "", keys_toml(chat="new", empty=""))
    for times, bad in enumerate(bad_files, 1):
        replace(file, bad)
        line = wait(server, KEPT, times)
        assert line["what"] == "api_keys"
        assert line["level"] == "error"
        assert str(file) in line["error"]
        assert failed_now(server, "api_keys") == 1
        assert takes(server, "new")
        assert not takes(server, "")
    assert "hunter2" not in server.raw_log
    file.unlink()
    os.mkfifo(file)  # nothing is ever written to it
    assert "is not a file" in wait(server, KEPT, 5)["error"]
    assert takes(server, "new")

    replace(file, keys_toml(chat="newest"))
    wait(server, RELOADED, 2)
    assert failed_now(server, "api_keys") == 0
    assert not takes(server, "new")
    assert takes(server, "newest")
    replace(file, "chat = []")
    wait(server, RELOADED, 3)
    server.wait_for_log("no caller has an API key: every call is rejected")
    assert not takes(server, "newest")
    os.truncate(file, 1 << 40)
    assert "is larger than 16777216 bytes" in wait(server, KEPT, 6)["error"]
    labels = {"what": "api_keys"}
    assert server.metric("bytepair_reloads_total", outcome="ok", **labels) == 3
    assert server.metric("bytepair_reloads_total", outcome="failed", **labels) == 6


def test_every_caller_with_a_quota_needs_a_key(serve: Serve, tmp_path: Path) -> None:
    """Otherwise the caller would have no limits, and a restart with these files would fail."""
    file = tmp_path / "keys.toml"
    file.write_text(keys_toml(chat="key"))
    config = "api_keys_file = 'keys.toml'\n[quotas.chat]\nconcurrent_requests = 10\n"
    server = serve("--config", write_config(tmp_path, config))
    replace(file, keys_toml(caht="key"))
    line = wait(server, KEPT, 1)
    assert "quotas.chat: no such caller or group; known: caht" in line["error"]
    assert f"write 'chat' = [] in {file}" in line["error"]
    assert line["files"] == [str(file)]
    assert "removed keys" in line["hint"]
    assert failed_now(server, "api_keys") == 1
    assert takes(server, "key")
    replace(file, keys_toml(chat="new", caht="key"))
    wait(server, RELOADED, 1)
    assert takes(server, "new")


@on_linux
def test_a_failed_reload_is_known_until_a_start_succeeds(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(keys_toml(chat="key"))
    server = serve(*TWO, "--api-keys-file", str(file))
    assert failed_now(server, "api_keys") == 0
    file.unlink()
    wait(server, KEPT, 2)
    for pid in workers_of(server):
        os.kill(pid, signal.SIGKILL)
    wait(server, "the worker cannot start", 4)
    server.wait_for_metric("bytepair_workers", 0)
    assert failed_now(server, "api_keys") == 1
    file.write_text(keys_toml(chat="key"))
    server.wait_for_metric("bytepair_reload_failed", 0, what="api_keys")
    assert takes(server, "key")


def test_a_change_with_equal_size_and_time_is_noticed(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(keys_toml(chat="a"))
    before = file.stat()
    server = serve("--api-keys-file", str(file))
    file.write_text(keys_toml(chat="b"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    wait(server, RELOADED, 1)
    assert takes(server, "b")
    assert not takes(server, "a")


def test_a_half_written_file_is_not_loaded(tmp_path: Path) -> None:
    """Half of a file may be valid TOML, without the callers of the other half."""
    file = tmp_path / "keys.toml"
    texts: list[str] = []
    file.write_text("a")
    log = logs.configure("json", "error", StringIO())
    reloader = Reloader("api_keys", [file], file.read_text, texts.append, Metrics(), log)

    async def write_slowly() -> None:
        for text in ("", "b", "bc"):
            file.write_text(text)
            await reloader.check()
            assert texts == []
        await reloader.check()
        assert texts == ["bc"]
        await reloader.check()
        file.write_text("d")
        await reloader.check()
        file.write_text("bc")  # as it was
        for _ in range(3):
            await reloader.check()
        assert texts == ["bc"]

    asyncio.run(write_slowly())


class FewThreads(ThreadPoolExecutor):
    """An executor that cannot start a thread while `is_full`."""

    is_full = False

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if self.is_full:
            raise RuntimeError("can't start new thread")
        return super().submit(work, *arguments, **named)


def test_reloading_goes_on_after_a_lack_of_threads_or_memory(tmp_path: Path) -> None:
    """Otherwise a revoked key would work until a restart."""
    file, output, texts = tmp_path / "keys.toml", StringIO(), list[str]()
    file.write_text("a")
    log, metrics = logs.configure("json", "error", output), Metrics()
    reloader = Reloader("api_keys", [file], file.read_text, texts.append, metrics, log)
    threads = FewThreads(1)

    def failed() -> float | None:
        return metrics.registry.get_sample_value("bytepair_reload_failed", {"what": "api_keys"})

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(threads)
        threads.is_full = True
        for _ in range(2):
            await reloader.check()
        assert (failed(), texts) == (1, [])
        threads.is_full = False
        for _ in range(2):
            await reloader.check()
        assert (failed(), texts) == (0, ["a"])
        file.write_text("")
        os.truncate(file, 1 << 40)
        for _ in range(3):
            await reloader.check()
        assert (failed(), texts) == (1, ["a"])
        file.write_text("b")
        for _ in range(2):
            await reloader.check()
        assert (failed(), texts) == (0, ["a", "b"])

    asyncio.run(run())
    assert [json.loads(line)["error"][-1] for line in output.getvalue().splitlines()] == [
        "RuntimeError",
        "MemoryError",
    ]


def test_symbolic_links_can_be_replaced(serve: Serve, tmp_path: Path) -> None:
    """Kubernetes mounts secrets so: each file links into a folder that is a link itself."""
    for version, key in (("1", "old"), ("2", "new")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "keys.toml").write_text(keys_toml(chat=key))
    (tmp_path / "data").symlink_to("1")
    (tmp_path / "keys.toml").symlink_to("data/keys.toml")
    server = serve("--api-keys-file", str(tmp_path / "keys.toml"))
    assert takes(server, "old")
    (tmp_path / "next").symlink_to("2")
    (tmp_path / "next").replace(tmp_path / "data")
    wait(server, RELOADED, 1)
    assert takes(server, "new")
    assert not takes(server, "old")


def connects(server: RunningServer, credentials: grpc.ChannelCredentials) -> bool:
    """Return whether a new connection with these credentials is answered."""
    # A pool of its own, or gRPC would share another channel's connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    target = server.target.replace("127.0.0.1", "localhost")
    with grpc.secure_channel(target, credentials, options) as channel:
        method: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
        return is_ok(grpc.StatusCode.UNAVAILABLE, method, REQUEST.SerializeToString())


@pytest.mark.slow
def test_the_expiry_of_certificates_is_measured_and_logged_if_it_is_soon(tmp_path: Path) -> None:
    """Of several workers it is one time; of several authorities, the first. The workers read a pair
    from one file, so that no reload finds half of it."""
    authority, file, authorities = Authority(), tmp_path / "pair.pem", tmp_path / "ca.pem"

    def after(days: int) -> datetime.datetime:
        return NOW + datetime.timedelta(days=days)

    def issue(days: int) -> None:
        pair = authority.server(until=after(days))
        replace(file, pair.certificate + pair.key)

    def issue_authority(days: int) -> None:
        replace(authorities, authority.pem + authority.until(after(days)))

    def check(warnings: int, **expected: int) -> None:
        soon = [(line["setting"], line["expires"]) for line in server.log if "expires" in line]
        assert len(soon) == warnings
        for setting, days in expected.items():
            name = "bytepair_tls_certificate_expiry_timestamp_seconds"
            assert server.metric(name, setting=setting) == after(days).timestamp()
            assert ((setting, after(days).isoformat()) in soon) == (days <= 14)

    issue(days=13)
    issue_authority(days=12)
    config = f"""
        tls_cert_file = "{file}"
        tls_key_file = "{file}"
        tls_client_ca_file = "{authorities}"
        builtin_encodings = ["cl100k_base"]
        [callers.a]
        certificates = ["dns:a.example"]
    """
    flags = ("--config", write_config(tmp_path, config), "--workers", "2")
    checked = check_config(*flags)
    for setting, days in {"tls_cert_file": 13, "tls_client_ca_file": 12}.items():
        when = after(days).isoformat()
        assert f"a TLS certificate expires soon: replace it expires={when} setting={setting}" in (
            checked.stderr
        )
    assert checked.returncode == 0
    with RunningServer(*flags) as server:
        check(2, tls_cert_file=13, tls_client_ca_file=12)
        issue_authority(days=15)
        wait(server, RELOADED, 2)
        check(4, tls_cert_file=13, tls_client_ca_file=15)
        issue(days=15)
        wait(server, RELOADED, 4)
        check(4, tls_cert_file=15, tls_client_ca_file=15)
        issue(days=13)
        wait(server, RELOADED, 6)
        check(6, tls_cert_file=13, tls_client_ca_file=15)


@pytest.mark.slow
def test_certificates_are_replaced_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(), Authority()
    old_pair, new_pair = old.server(), new.server()
    old_pair.write(tmp_path)
    (tmp_path / "ca.pem").write_bytes(old.pem)
    name = "spiffe://example.org/a"
    old_client, new_client = old.client(uris=[name]), new.client(uris=[name])
    config = f"""
        tls_cert_file = "server.pem"
        tls_key_file = "key.pem"
        tls_client_ca_file = "ca.pem"
        builtin_encodings = ["cl100k_base"]
        [callers.a]
        certificates = ["uri:{name}"]
    """
    with RunningServer(
        "--config", write_config(tmp_path, config), credentials=trusting(old.pem, old_client)
    ) as server:
        assert server.stub.Count(REQUEST).count == 1
        assert connects(server, trusting(old.pem, old_client))
        assert not connects(server, trusting(old.pem, new_client))

        # One file after the other: meanwhile the key does not belong to the certificate.
        replace(tmp_path / "server.pem", new_pair.certificate)
        line = wait(server, KEPT, 1)
        assert line["what"] == "tls"
        assert "key values mismatch" in line["error"]
        assert len(line["files"]) == 3
        assert failed_now(server, "tls") == 1
        assert connects(server, trusting(old.pem, old_client))
        replace(tmp_path / "key.pem", new_pair.key)
        wait(server, RELOADED, 1)
        assert failed_now(server, "tls") == 0
        assert not connects(server, trusting(old.pem, old_client))
        assert connects(server, trusting(new.pem, old_client))

        # A certificate that every client would reject, and its key.
        old.server(until=YESTERDAY).write(tmp_path)
        assert "every client would reject it" in wait(server, KEPT, 2)["error"]
        new_pair.write(tmp_path)
        wait(server, RELOADED, 2)

        # Both authorities at first, and then only the new one.
        replace(tmp_path / "ca.pem", old.pem + new.pem)
        wait(server, RELOADED, 3)
        assert connects(server, trusting(new.pem, old_client))
        assert connects(server, trusting(new.pem, new_client))
        replace(tmp_path / "ca.pem", b"nothing")
        assert "holds no certificates" in wait(server, KEPT, 3)["error"]
        assert connects(server, trusting(new.pem, new_client))
        replace(tmp_path / "ca.pem", b"")
        assert "holds no certificates" in wait(server, KEPT, 4)["error"]
        assert not connects(server, trusting(new.pem, None))
        replace(tmp_path / "ca.pem", new.pem)
        wait(server, RELOADED, 4)
        assert not connects(server, trusting(new.pem, old_client))
        assert connects(server, trusting(new.pem, new_client))

        # The connection that was open all the time.
        assert server.stub.Count(REQUEST).count == 1
