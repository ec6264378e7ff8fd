"""What gRPC's own retries do to streams: why the client's streams have a channel without them.

    python -m bench.reliability.replay --retries policy    with a retry policy
    python -m bench.reliability.replay --retries own       only gRPC's transparent retries
    python -m bench.reliability.replay --retries none

Two echo servers are stopped and started alternately, like replicas during a rollout. Callers number
their messages. Prints how the streams ended: a stream that succeeded without one of its messages is
a fault; one that is still open long after its deadline hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any, Final

import grpc

PORTS: Final = (46001, 46002)
CALLERS: Final = 14
DEADLINE_S: Final = 5.0
POLICY: Final = {
    "name": [{"service": "bench.Echo"}],
    "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.01s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    },
}


class Echo(grpc.GenericRpcHandler):
    """Echoes each message; rejects new streams while it drains."""

    def __init__(self) -> None:
        self.draining = False

    def service(self, _: Any) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.stream_stream_rpc_method_handler(self._echo)

    async def _echo(self, _: object, context: Any) -> None:
        if self.draining:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "draining")
        while (message := await context.read()) is not grpc.aio.EOF:
            await context.write(message)


async def serve(port: int) -> None:
    """Serve for some tenths of a second, drain, stop and start again, until killed."""
    while True:
        echo, server = Echo(), grpc.aio.server()
        server.add_generic_rpc_handlers((echo,))
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await asyncio.sleep(random.uniform(0.1, 0.4))
        echo.draining = True
        await asyncio.sleep(random.uniform(0.02, 0.2))
        await server.stop(random.choice([0, 0.05, 0.1]))


def call(channel: grpc.Channel) -> str:
    """Run one stream. Returns how it ended."""
    numbers = range(random.choice([10, 40]))

    def messages() -> Iterator[bytes]:
        for number in numbers:
            yield b"%d" % number
            sleep(random.choice([0.0003, 0.001]))

    rpc: Any = channel.stream_stream("/bench.Echo/Echo")
    answers: list[int] = []
    try:
        answers.extend(map(int, rpc(messages(), timeout=DEADLINE_S)))
    except grpc.RpcError as error:
        sleep(0.02)  # a server is not there for some tenths of a second
        whole = answers == list(numbers)[: len(answers)]
        code: grpc.StatusCode = error.code()
        return f"failed: {code.name}" if whole else "failed, with a message missing"
    return "well" if answers == list(numbers) else "well, with a message missing"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--retries", choices=["policy", "own", "none"], default="policy")
    parser.add_argument("--seconds", type=float, default=60, help="60 unless given")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
    command = [sys.executable, "-m", "bench.reliability.replay", "--serve"]
    servers = [subprocess.Popen([*command, str(port)], stderr=subprocess.DEVNULL) for port in PORTS]
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if arguments.retries == "policy":
        config["methodConfig"] = [POLICY]
    options = [
        ("grpc.service_config", json.dumps(config)),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.enable_retries", int(arguments.retries != "none")),
    ]
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in PORTS)
    ends: Counter[str] = Counter()
    until = monotonic() + arguments.seconds

    def caller() -> None:
        while monotonic() < until:
            with grpc.insecure_channel(target, options) as channel:
                for _ in range(8):
                    if monotonic() < until:
                        ends[call(channel)] += 1

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + 4 * DEADLINE_S - monotonic()))
    ends["not at all"] = sum(thread.is_alive() for thread in threads)
    for server in servers:
        server.kill()
        server.wait()
    print(f"grpcio {grpc.__version__}, streams that ended …")
    for end, times in ends.most_common():
        print(f"{times:8} {end}")


if __name__ == "__main__":
    main()
