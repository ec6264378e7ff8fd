"""One server shape: the project's service in a bare handler, without metrics, logs or gate.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import uvloop
from bytepair_server import catalog
from bytepair_server.call import Call
from bytepair_server.callers import Callers
from bytepair_server.policy import Policy
from bytepair_server.service import METHODS, Service
from bytepair_server.settings import Settings

SYNC_THREADS = 16
WORK_THREADS = 2


def main() -> None:
    """Serve in the shape of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=["sync", "asyncio", "uvloop"])
    parser.add_argument("--inline-max-bytes", type=int, default=0)
    options = parser.parse_args()
    settings = Settings(builtin_encodings=("cl100k_base",), max_input_bytes=1 << 24)
    loaded = catalog.load(settings, Path())
    service = Service(settings, loaded, Policy({}, loaded, Callers()))

    def answer(raw: bytes) -> bytes:
        method = METHODS["Count"]
        request = method.read(raw)
        return method.function(service, request, Call(()))

    server_options = [("grpc.max_receive_message_length", settings.max_message_bytes)]
    if options.shape == "sync":
        serve_sync(answer, server_options)
    elif options.shape == "asyncio":
        asyncio.run(serve_async(answer, server_options, options.inline_max_bytes))
    else:
        uvloop.run(serve_async(answer, server_options, options.inline_max_bytes))


def handlers(handler: Any) -> grpc.GenericRpcHandler:
    """Count, answered by `handler`."""
    methods: Any = {"Count": grpc.unary_unary_rpc_method_handler(handler)}
    return grpc.method_handlers_generic_handler("bytepair.v1.TokenizerService", methods)


def serve_sync(answer: Any, server_options: Any) -> None:
    """gRPC's threads: each call is a thread's."""
    server = grpc.server(ThreadPoolExecutor(SYNC_THREADS), options=server_options)
    server.add_generic_rpc_handlers((handlers(lambda raw, _: answer(raw)),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
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
    server.add_generic_rpc_handlers((handlers(handle),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    main()
