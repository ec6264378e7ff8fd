"""An empty handler by `grpc.aio`: the messages and sizes of the service.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
from typing import Any

import grpc
import uvloop

from bench.service.shapes import shapes


async def serve() -> None:
    """Answer each request, recognised by its size, with the right bytes."""
    answers: dict[str, dict[int, bytes]] = {}
    for shape in shapes():
        answers.setdefault(shape.rpc, {})[len(shape.message)] = shape.answer

    def handler(by_size: dict[int, bytes]) -> Any:
        async def handle(raw: bytes, _: object) -> bytes:
            return by_size[len(raw)]

        return handle

    methods: dict[str, Any] = {
        rpc: grpc.unary_unary_rpc_method_handler(handler(by_size))
        for rpc, by_size in answers.items()
    }
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_concurrent_streams", 1024)]
    server = grpc.aio.server(options=options)
    service = "bytepair.v1.TokenizerService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    uvloop.run(serve())
