"""The service's handlers beside an empty echo, on one gRPC server: the same shape for both.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import grpc
import uvloop
from bytepair.v1 import stream_pb2
from bytepair_server import catalog
from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.executor import Work
from bytepair_server.admission.limiter import Gate
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.policy import Policy
from bytepair_server.auth.quotas import Quotas
from bytepair_server.config.settings import Settings
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.rpc.handler import Endpoint
from bytepair_server.rpc.service import Service
from bytepair_server.streaming.handler import Streams
from bytepair_server.transport import accepting, grpcio
from bytepair_server.workers import cores

#: As long as DecodeStream's answers to one id.
ANSWER = stream_pb2.DecodeStreamResponse(text=" word", tokens_consumed=300).SerializeToString()


async def echo(_: object, context: Any) -> None:
    """Answer each message, and look into none."""
    read, write = context.read, context.write
    while await read() is not grpc.aio.EOF:
        await write(ANSWER)


async def serve() -> None:
    """Serve, as `bytepair_server.lifecycle` does, without its stages."""
    settings = Settings(builtin_encodings=("cl100k_base",), max_concurrent_streams=1 << 20)
    loaded = catalog.load(settings, Path())
    callers = Callers()
    service = Service(settings, loaded, Policy({}, loaded, callers))
    gate = Gate(
        max_in_flight=settings.max_in_flight,
        max_in_flight_bytes=settings.max_in_flight_bytes,
        max_open_streams=settings.max_open_streams,
        max_streams_bytes=settings.max_streams_bytes,
        max_waiting=settings.max_waiting,
        max_wait_seconds=settings.max_wait_seconds,
    )
    metrics, log = Metrics(), logs.configure("json", "info")
    shared: dict[str, Any] = {
        "gate": gate,
        "floods": Floods(0, metrics, log),
        "callers": callers,
        "quotas": Quotas({}, callers),
        "work": Work(cores.usable_cores(), settings.inline_max_bytes),
        "metrics": metrics,
        "log": log,
        "log_calls": None,
        "log_denials": False,
    }
    endpoint, streams = Endpoint(**shared), Streams(**shared, idle_seconds=300)
    endpoint.service, streams.options = service, service.options
    gate.open()
    echoes: dict[str, Any] = {"Echo": grpc.stream_stream_rpc_method_handler(echo)}
    options = [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_concurrent_streams", settings.max_concurrent_streams),
    ]
    server = accepting.server(options, print)
    server.add_registered_method_handlers("bench.Bench", echoes)
    grpcio.register(server, [*endpoint.methods(), *streams.methods()], shared["floods"])
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    sys.stdout.flush()
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    uvloop.run(serve())
