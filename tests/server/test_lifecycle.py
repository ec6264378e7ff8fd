"""Start, serve, drain, stop: the view of callers and probes at each stage."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server import catalog
from bytepair_server.admission import executor
from bytepair_server.config import loader
from bytepair_server.config.settings import Settings
from bytepair_server.observability import logs
from bytepair_server.server import Server
from bytepair_server.startup import startup_message
from bytepair_server.workers.signals import stop_signals
from conftest import Serve
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.failures import read
from support.inherited import inherited
from support.serving import (
    START_SECONDS,
    RunningServer,
    clean_environment,
    command,
    run_to_end,
    write_config,
)
from support.slow import SLOW_FLAGS, WITHOUT_CORE, endless_count, finish, unfinished_count

SERVICE = "bytepair.v1.TokenizerService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ARGUMENTS = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"]
ARGUMENTS += ["--builtin-encodings", "cl100k_base", "--allow-reference-backend"]
QUICK = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")


def check(channel: grpc.Channel | grpc.aio.Channel) -> Any:
    """Return the method Check on a channel of either kind."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return stub.Check


def health(channel: grpc.Channel, service: str = "") -> int:
    status: int = check(channel)(health_pb2.HealthCheckRequest(service=service)).status
    return status


def test_health_is_served_for_the_server_and_the_service(server: RunningServer) -> None:
    assert health(server.channel) == SERVING
    assert health(server.channel, SERVICE) == SERVING
    with pytest.raises(grpc.RpcError) as caught:
        health(server.channel, "no.such.Service")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "unknown service"
    assert server.get("/readyz") == (200, "ready\n")
    assert server.get("/healthz") == (200, "healthy\n")
    assert server.get("/other")[0] == 404
    assert server.metric("bytepair_ready") == 1


@pytest.mark.slow
def test_a_call_before_the_encodings_are_loaded_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The health servicer of grpcio-health-checking starts as SERVING; this one does not."""
    monkeypatch.setattr(executor, "CLOSE_SECONDS", START_SECONDS)

    def page(server: Server, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"http://{server.http_address}{path}") as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def run() -> None:
        server = Server(loader.load(ARGUMENTS, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        try:
            async with grpc.aio.insecure_channel(server.grpc_address) as channel:
                ask = health_pb2.HealthCheckRequest(service=SERVICE)
                assert (await check(channel)(ask)).status == NOT_SERVING
                waiting = (503, "loading encodings\n")
                assert await asyncio.to_thread(page, server, "/readyz") == waiting
                method: Any = channel.unary_unary(f"/{SERVICE}/Count")
                count = method(QUICK.SerializeToString())
                while "in_flight 1" not in (await asyncio.to_thread(page, server, "/metrics"))[1]:
                    assert not count.done()
                await server.load()
                # Full garbage collections do not traverse the encodings while calls wait.
                assert len(gc.get_objects()) < gc.get_freeze_count() / 10
                assert tokenizer_pb2.CountResponse.FromString(await count).count == 1
                assert (await check(channel)(ask)).status == SERVING
                stub: Any = health_pb2_grpc.HealthStub(channel)
                watch = stub.Watch(ask)
                assert (await watch.read()).status == SERVING
                await server.drain()
                assert (await watch.read()).status == NOT_SERVING
        finally:
            assert await server.stop()

    try:
        asyncio.run(run())
    finally:
        gc.unfreeze()


def test_a_running_call_is_finished_before_the_server_stops(serve: Serve) -> None:
    """grpc #37239: stop(grace) of grpc.aio admits new calls and cuts off running ones."""
    server = serve("--grace-seconds", "600")
    with unfinished_count(server) as call:
        server.wait_for_metric("bytepair_in_flight", 1)
        server.terminate()
        server.wait_for_log("draining", in_flight=1)
        assert finish(call) == 200
    assert server.wait() == 0
    assert server.log[-1]["event"] == "stopped"


def test_a_call_that_exceeds_the_grace_time_gets_a_status(serve: Serve) -> None:
    """grpc #29248: a CancelledError raised by a handler can leave the client waiting."""
    server = serve(*SLOW_FLAGS, "--grace-seconds", "0", environment=WITHOUT_CORE)
    with endless_count(server) as running:
        server.terminate()
        failed = read(running.exception())
    assert (failed.code, failed.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert server.wait() == 0
    assert (
        server.wait_for_log("ended calls that were still running after the grace time")["calls"]
        == 1
    )


def test_a_second_signal_cuts_the_grace_time_short(serve: Serve) -> None:
    server = serve(*SLOW_FLAGS, "--grace-seconds", "3600", environment=WITHOUT_CORE)
    with endless_count(server) as running:
        server.terminate()
        server.wait_for_log("draining", in_flight=1)
        server.terminate()
        failed = read(running.exception())
    assert failed.reason == "DRAINING"
    assert server.wait() == 0


#: Python runs it before anything else.
SIGTERM_AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(name, *_):
        if name == "bytepair_server.command":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--check-config",), -signal.SIGTERM)])
def test_a_sigterm_during_the_start_ends_the_server(
    tmp_path: Path, flags: tuple[str, ...], status: int
) -> None:
    """Process 1 of a container, which has no default handlers, would go on."""
    (tmp_path / "sitecustomize.py").write_text(SIGTERM_AT_IMPORT)
    ended = run_to_end("--http-address", "none", *flags, PYTHONPATH=str(tmp_path))
    assert ended.returncode == status


def test_ctrl_c_stops_an_idle_server(serve: Serve) -> None:
    server = serve()
    os.kill(server.pid, signal.SIGINT)
    assert server.wait() == 0
    caught = server.wait_for_log("caught a signal")
    assert caught["signal"] == "SIGINT"
    assert "a second SIGINT or SIGTERM ends running calls and streams at once" in caught["hint"]


def test_closing_the_terminal_drains_the_server(serve: Serve) -> None:
    """The shell and the kernel may both send SIGHUP, which counts as one request to drain."""
    with inherited(signal.SIGHUP, signal.SIG_DFL):
        server = serve("--grace-seconds", "600")
    with unfinished_count(server) as call:
        server.wait_for_metric("bytepair_in_flight", 1)
        os.kill(server.pid, signal.SIGHUP)
        server.wait_for_log("draining", in_flight=1)
        os.kill(server.pid, signal.SIGHUP)
        server.wait_for_log("caught a signal", times=2, signal="SIGHUP")
        hint = server.wait_for_log("caught a signal")["hint"]
        assert "changed key and TLS files are reloaded without a signal" in hint
        assert finish(call) == 200
    assert server.wait() == 0
    assert server.log[-1]["event"] == "stopped"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_started_by_nohup_survives_its_terminal(serve: Serve, workers: str) -> None:
    with inherited(signal.SIGHUP, signal.SIG_IGN):
        server = serve("--workers", workers)
    os.kill(server.pid, signal.SIGHUP)
    assert server.stub.Count(QUICK).count == 1
    server.terminate()
    assert server.wait() == 0
    caught = [line["signal"] for line in server.log if line["event"] == "caught a signal"]
    assert caught == ["SIGTERM"]


def test_signal_handlers_are_restored_after_the_server() -> None:
    """grpc #26123: grpc.aio installs no signal handlers."""

    async def run() -> None:
        stopping, again = asyncio.Event(), asyncio.Event()
        with stop_signals(stopping, logs.configure("json", "error", StringIO()), again.set):
            os.kill(os.getpid(), signal.SIGTERM)
            await stopping.wait()
            assert not again.is_set()
            os.kill(os.getpid(), signal.SIGINT)
            await again.wait()

    def mine(number: int, frame: object) -> None:
        raise AssertionError("the signal was not captured")

    before = signal.signal(signal.SIGTERM, mine)
    try:
        asyncio.run(run())
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_the_startup_message_lists_the_encodings_and_a_command_to_try() -> None:
    flags = ("--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--reflection")
    with subprocess.Popen(
        command("--log-format", "console", "--allow-reference-backend", *flags),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        shown = ""
        while "Ctrl-C stops it." not in shown:
            line = process.stdout.readline()
            assert line, "it ended"
            shown += line
        process.send_signal(signal.SIGINT)
        assert process.wait(START_SECONDS) == 0
    assert "bytepair serves cl100k_base, o200k_base, o200k_harmony, p50k_base" in shown
    target = shown.split("gRPC, JSON   ")[1].split()[0]
    (line,) = [line for line in shown.splitlines() if " count " in line]
    tried = subprocess.run(
        line.partition("|")[2].split()[0] + " --version",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert tried.stdout.startswith(b"bytepair ")
    assert f" --target {target} --encoding gpt-4o" in line
    assert f"grpcurl -plaintext {target} list bytepair.v1.TokenizerService" in shown


def test_the_startup_message_has_a_command_to_try_over_tls() -> None:
    settings = Settings(
        builtin_encodings=("r50k_base",),
        reflection=True,
        tls_cert_file="a.pem",
        tls_key_file="a.pem",
        tls_client_ca_file="a.pem",
    )
    page = "https://localhost:1/"
    loaded = catalog.load(settings, Path())
    shown = startup_message(settings, loaded, "native", "0.0.0.0:1", "", page)
    assert "  gRPC, JSON   0.0.0.0:1\n" in shown
    assert "  gRPC         0.0.0.0:1\n" in startup_message(
        settings, loaded, "grpcio", "0.0.0.0:1", "", page
    )
    assert (
        "--target localhost:1 --encoding r50k_base"
        " --tls-ca CA.pem --tls-cert CERTIFICATE.pem --tls-key KEY.pem\n"
    ) in shown
    with_certificate = "-cacert CA.pem -cert CERTIFICATE.pem -key KEY.pem"
    assert f"grpcurl {with_certificate} localhost:1 list" in shown
    assert "  page         https://localhost:1/ " in shown


@pytest.mark.slow
def test_a_replaced_vocabulary_file_prevents_the_start(tmp_path: Path) -> None:
    (tmp_path / "table.tiktoken").write_text("YQ== 0\n", encoding="utf-8")
    declared = f"""
        [encodings.mine]
        file = "table.tiktoken"
        pattern = "gpt2"
        sha256 = "{"0" * 64}"
    """
    ended = subprocess.run(
        command(
            *("--grpc-address", "127.0.0.1:0", "--http-address", "none"),
            *("--allow-reference-backend", "--builtin-encodings", "r50k_base"),
            *("--config", write_config(tmp_path, declared)),
        ),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert "bytepair-server: encodings.mine (from file " in ended.stderr
    assert "table.tiktoken" in ended.stderr
    assert "0" * 64 in ended.stderr
    assert "Traceback" not in ended.stderr
