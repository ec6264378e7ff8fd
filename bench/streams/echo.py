"""An empty echo of streams by `grpc.aio`: the upper bound of any server on that API.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import grpc
import uvloop
from bytepair.v1 import stream_pb2

#: As long as DecodeStream's answers to one id.
ANSWER = stream_pb2.DecodeStreamResponse(text=" word", tokens_consumed=300).SerializeToString()


async def echo(_: object, context: Any) -> None:
    """Answer each message without parsing it."""
    read, write = context.read, context.write
    while await read() is not grpc.aio.EOF:
        await write(ANSWER)


async def serve() -> None:
    """Serve the echo by the name of DecodeStream."""
    echoes: dict[str, Any] = {"DecodeStream": grpc.stream_stream_rpc_method_handler(echo)}
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 1 << 20)])
    name = "bytepair.v1.TokenizerService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, echoes),))
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    sys.stdout.flush()
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    uvloop.run(serve())
