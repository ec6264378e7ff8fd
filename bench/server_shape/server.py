"""One server shape: the project's service in a bare handler, without metrics, logs or gate.

Prints the port for calls and the one for streams, then serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import uvloop
from bytepair_server import catalog
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.policy import Policy
from bytepair_server.config.settings import Settings
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.service import METHODS, Service

SYNC_THREADS = 16
WORK_THREADS = 2


def main() -> None:
    """Serve in the shape of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=["sync", "asyncio", "uvloop", "both"])
    parser.add_argument("--inline-max-bytes", type=int, default=0)
    options = parser.parse_args()
    settings = Settings(builtin_encodings=("cl100k_base",), max_input_bytes=1 << 24)
    loaded = catalog.load(settings, Path())
    service = Service(settings, loaded, Policy({}, loaded, Callers()))

    def answer(raw: bytes) -> bytes:
        method = METHODS["Count"]
        request = method.read(raw)
        return method.function(service, request, Call())

    server_options = [("grpc.max_receive_message_length", settings.max_message_bytes)]
    if options.shape == "sync":
        serve_sync(answer, server_options)
    elif options.shape == "both":
        serve_both(answer, server_options)
    elif options.shape == "asyncio":
        asyncio.run(serve_async(answer, server_options, options.inline_max_bytes))
    else:
        uvloop.run(serve_async(answer, server_options, options.inline_max_bytes))


def handlers(handler: Any) -> grpc.GenericRpcHandler:
    """Count, answered by `handler`."""
    methods: Any = {"Count": grpc.unary_unary_rpc_method_handler(handler)}
    return grpc.method_handlers_generic_handler("bytepair.v1.TokenizerService", methods)


async def echo(_: object, context: Any) -> None:
    """A stream: answer each message with itself."""
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)


STREAMS = grpc.method_handlers_generic_handler(
    "bench.Bench", {"Echo": grpc.stream_stream_rpc_method_handler(echo)}
)


def start_sync(answer: Any, server_options: Any) -> tuple[grpc.Server, int]:
    """gRPC's threads: each call is a thread's."""
    server = grpc.server(ThreadPoolExecutor(SYNC_THREADS), options=server_options)
    server.add_generic_rpc_handlers((handlers(lambda raw, _: answer(raw)),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def serve_sync(answer: Any, server_options: Any) -> None:
    """Threads, and no streams, each of which would hold one."""
    server, port = start_sync(answer, server_options)
    print(port, 0, flush=True)
    server.wait_for_termination()


def serve_both(answer: Any, server_options: Any) -> None:
    """Calls on threads, and streams on an event loop of the same process, at a port of their own:
    one port has one server."""
    server, port = start_sync(answer, server_options)

    async def serve_streams() -> None:
        streams = grpc.aio.server(options=server_options)
        streams.add_generic_rpc_handlers((STREAMS,))
        print(port, streams.add_insecure_port("127.0.0.1:0"), flush=True)
        await streams.start()
        await streams.wait_for_termination()

    threading.Thread(target=lambda: uvloop.run(serve_streams()), daemon=True).start()
    server.wait_for_termination()


async def serve_async(answer: Any, server_options: Any, inline_max_bytes: int) -> None:
    """An event loop: small calls on it, large ones on a thread."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(WORK_THREADS)

    async def handle(raw: bytes, _: Any) -> bytes:
        if len(raw) <= inline_max_bytes:
            result: bytes = answer(raw)
            return result
        return await loop.run_in_executor(pool, answer, raw)

    server = grpc.aio.server(options=server_options)
    server.add_generic_rpc_handlers((handlers(handle), STREAMS))
    port = server.add_insecure_port("127.0.0.1:0")
    print(port, port, flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    main()
