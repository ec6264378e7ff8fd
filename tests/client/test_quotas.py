"""Quotas: waiting when one is exceeded, and a maximum rate of calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair_client import (
    ClientClosed,
    DeadlineExceeded,
    Overloaded,
    QuotaExceeded,
    Unavailable,
)
from support.clients import Clients
from support.keys import keys_toml
from support.scripted import Answer, ScriptedServer, details, fail, ok
from support.scripted_streams import ScriptedStreams, echo, reject
from support.serving import RunningServer, write_config

STATUS = grpc.StatusCode.RESOURCE_EXHAUSTED


def rejected(reason: str, delay_ms: int = 1500) -> Answer:
    """An error of this reason with a retry delay."""
    metadata = {"quota": "calls", "limit": "1"}
    return fail(STATUS, "later", details=details(reason, STATUS, metadata, delay_ms=delay_ms))


@pytest.mark.slow
def test_a_call_waits_as_long_as_retry_info_says(clients: Clients) -> None:
    refused = fail(grpc.StatusCode.UNAVAILABLE)
    with ScriptedServer(rejected("QUOTA_EXCEEDED"), refused, ok) as server:
        # The wait is no failed attempt.
        client = clients(server.target, encoding="e", wait_for_quota=True, max_attempts=2)
        began = monotonic()
        assert client.count("text", timeout=1.4) == 7  # the wait is not part of it
        assert monotonic() - began >= 1.5
        assert len(server.calls) == 3


def test_waiting_is_for_quotas_alone_and_on_request(clients: Clients) -> None:
    with ScriptedServer(rejected("QUOTA_EXCEEDED")) as server:
        with pytest.raises(QuotaExceeded) as caught:
            clients(server.target, encoding="e").count("text")
        assert caught.value.retry_after == 1.5
    with ScriptedServer(rejected("OVERLOADED")) as server:
        with pytest.raises(Overloaded):
            clients(server.target, encoding="e", wait_for_quota=True).count("text")
        assert len(server.calls) == 1


def test_closing_the_client_ends_the_wait(clients: Clients) -> None:
    with ScriptedServer(rejected("QUOTA_EXCEEDED", 120_000)) as server:
        client = clients(server.target, encoding="e", wait_for_quota=True)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.count, "text")
            while not client._sleepers:
                sleep(0.001)
            client.close()
            with pytest.raises(ClientClosed):
                waiting.result(30)
        with pytest.raises(ClientClosed):
            client.count("text")
        assert len(server.calls) == 1


@pytest.mark.slow
def test_a_job_over_its_quota_waits_and_completes(clients: Clients, tmp_path: Path) -> None:
    keys = keys_toml(job="secret", once="another")
    (tmp_path / "keys.toml").write_text(keys, encoding="utf-8")
    config = """
    api_keys_file = "keys.toml"
    builtin_encodings = ["cl100k_base"]
    [quotas.job]
    requests_per_second = 10
    request_burst = 2
    [quotas.once]
    requests_per_second = 0.001
    request_burst = 1
    """
    with RunningServer("--config", write_config(tmp_path, config)) as server:
        options: dict[str, Any] = {"encoding": "cl100k_base", "api_key": "secret"}
        paced = clients(server.target, max_requests_per_second=5, **options)
        assert [paced.count("a b") for _ in range(5)] == [2] * 5
        impatient = clients(server.target, encoding="cl100k_base", api_key="another")
        assert impatient.count("a b") == 2
        with pytest.raises(QuotaExceeded):
            impatient.count("a b")
        patient = clients(server.target, wait_for_quota=True, **options)
        assert [patient.count("a b") for _ in range(10)] == [2] * 10
        assert patient.count_batch(["a b"] * 8000) == [2] * 8000
        assert "".join(patient.decode_stream([64, 65])) == "ab"


def test_calls_keep_to_the_maximum_rate(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = clients(server.target, encoding="e", max_requests_per_second=20)
        began = monotonic()
        for _ in range(5):
            client.count("text")
        assert monotonic() - began >= 4 / 20


def test_the_wait_for_the_maximum_rate_counts_towards_the_timeout(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = clients(server.target, encoding="e", max_requests_per_second=0.5)
        client.count("text")
        for _ in range(20):
            with pytest.raises(DeadlineExceeded, match="max_requests_per_second"):
                client.count("text", timeout=0.01)
        assert len(server.calls) == 1
        client.count("text", timeout=10)  # the others have reserved no time
        assert len(server.calls) == 2


def test_the_wait_counts_towards_the_timeout_of_a_stream(clients: Clients) -> None:
    with ScriptedStreams(reject(grpc.StatusCode.UNAVAILABLE), echo) as server:
        client = clients(server.target, encoding="e", max_requests_per_second=0.001)
        with pytest.raises(DeadlineExceeded) as caught:  # at the second attempt
            next(client.decode_stream([1], timeout=10))
        assert isinstance(caught.value.__cause__, Unavailable)
        with pytest.raises(DeadlineExceeded, match="max_requests_per_second"):
            next(client.decode_stream([1], timeout=10))
        assert len(server.metadata) == 1


def test_a_deadline_still_ends_a_call(clients: Clients) -> None:
    with ScriptedServer(fail(grpc.StatusCode.DEADLINE_EXCEEDED)) as server:
        client = clients(server.target, encoding="e", wait_for_quota=True)
        with pytest.raises(DeadlineExceeded):
            client.count("text", timeout=1)
