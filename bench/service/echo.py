"""The service's transport with an empty handler: the same server, messages and sizes.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
from typing import Any

from bytepair_server.workers import environment

environment.prepare()

import grpc  # noqa: E402  # it reads what was prepared
import uvloop  # noqa: E402
from bytepair_server.config.settings import Settings  # noqa: E402
from bytepair_server.transport.options import grpc_options  # noqa: E402
from bytepair_server.transport.poller import poller_in_its_place  # noqa: E402

from bench.service.shapes import shapes  # noqa: E402


async def serve() -> None:
    """Answer each request, known by its size, with the bytes that are right."""
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
    with poller_in_its_place():
        server = grpc.aio.server(options=grpc_options(Settings(), shares_port=False))
    service = "bytepair.v1.TokenizerService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    uvloop.run(serve())
