"""What does the service add to the echo? A Count of 1,000 B with more and more of the handler.

    PYTHONPATH=tests:. python -m bench.service.parts

The real server, whose handler ends early: each line has all that those above it have. Server and
load as in bench.service.measure; CPU time for each call, medians of rounds in turns.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from bytepair_server.workers import environment

from bench.service.load import LOAD_CORE, SERVER_CORE, measure, other, service

ROUNDS, SECONDS, IN_FLIGHT = 3, 1.0, 64
#: As long as that of the real handler.
ANSWER = b"\x08\xfa\x01" + b"x" * 86
PARTS = {
    "empty": "the server with an empty handler",
    "caller": "metadata and who calls",
    "admitted": "limits of calls, request id in the trailer",
    "counted": "metrics",
    "read": "reading the request",
    "answered": "options, limits of text, the answer's message",
    "all": "the engine",
    "logged": "a line of the log for each call, which is off unless asked for",
}


def main() -> None:
    """Measure and print."""
    from bench.service.shapes import shapes

    shape = next(shape for shape in shapes() if shape.name == "Count 1,000 B")
    costs: dict[str, list[float]] = {name: [] for name in ("echo", *PARTS)}
    for _ in range(ROUNDS):
        for name, found in costs.items():
            command = ("-m", "bench.service.parts", name)
            flags = ("--log-calls", "info") if name == "logged" else ()
            started = other("echo", core=SERVER_CORE) if name == "echo" else None
            with started or service(1, SERVER_CORE, command=command, flags=flags) as server:
                figures = measure(server, shape, IN_FLIGHT, SECONDS, connections=1, core=LOAD_CORE)
            found.append(figures.cpu)
    print("| | CPU µs | more |\n|---|---:|---:|")
    before = None
    for name, found in costs.items():
        cost = statistics.median(found)
        more = "" if before is None else f"{cost - before:+.0f}"
        print(f"| {PARTS.get(name, 'echo')} | {cost:.0f} | {more} |")
        before = cost


def serve(part: str) -> int:
    """Serve with the handler up to a part."""
    environment.prepare()
    from bytepair_server import command
    from bytepair_server.observability import metrics
    from bytepair_server.rpc import handler
    from bytepair_server.rpc import service as rpcs

    def shortened(self: Any, rpc: str) -> Any:
        begin, identify = self._outcomes(rpc).begin, self._callers.identify

        async def handle(_: bytes, context: Any) -> bytes:
            if part == "caller":
                call = begin(context)
                call.caller = identify(call.authorization, context.auth_context)
            return ANSWER

        return handle

    def read(_: Any, method: Any, raw: bytes, __: Any) -> bytes:
        if part == "read":
            method.read(raw)
        return ANSWER

    patched: Any = handler.Endpoint
    if part in ("empty", "caller"):
        patched._handler = shortened
    elif part in ("admitted", "counted", "read"):
        patched._answer = read
        if part == "admitted":
            rpc_metrics: Any = metrics.RpcMetrics
            rpc_metrics.succeeded = lambda *_: None
    elif part == "answered":
        module: Any = rpcs
        module._count = lambda *_: (250, False)
    return command.run(sys.argv[2:])


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(serve(sys.argv[1]))
    main()
