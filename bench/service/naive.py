"""A simple server, as written in an afternoon: tiktoken behind grpcio's threads, or behind FastAPI.

Prints the port, then serves until it is killed.
"""

from __future__ import annotations

import argparse
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc
from support.oracle import oracle

from bench.service.shapes import ENCODING

THREADS = 16
MAX_BYTES = 64 << 20


class Naive(tokenizer_pb2_grpc.TokenizerServiceServicer):
    """The RPCs, computed by tiktoken."""

    def __init__(self) -> None:
        self._encoding = oracle(ENCODING)

    def Count(self, request: Any, _: Any) -> Any:  # noqa: N802  # gRPC's name
        ids = self._encoding.encode_ordinary(request.text)
        return tokenizer_pb2.CountResponse(count=len(ids), encoding=ENCODING)

    def Encode(self, request: Any, _: Any) -> Any:  # noqa: N802
        ids = self._encoding.encode_ordinary(request.text)
        return tokenizer_pb2.EncodeResponse(ids=ids, encoding=ENCODING)

    def BatchCount(self, request: Any, _: Any) -> Any:  # noqa: N802
        counts = [len(self._encoding.encode_ordinary(item.text)) for item in request.items]
        results = [tokenizer_pb2.CountResult(count=count) for count in counts]
        return tokenizer_pb2.BatchCountResponse(results=results, encoding=ENCODING)

    def Decode(self, request: Any, _: Any) -> Any:  # noqa: N802
        text = self._encoding.decode(request.ids)
        return tokenizer_pb2.DecodeResponse(text=text, encoding=ENCODING)


def serve_grpc() -> None:
    """Serve with grpcio's synchronous server."""
    options = [("grpc.max_receive_message_length", MAX_BYTES)]
    server = grpc.server(ThreadPoolExecutor(THREADS), options=options)
    tokenizer_pb2_grpc.add_TokenizerServiceServicer_to_server(Naive(), server)  # type: ignore[no-untyped-call]
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


def serve_http() -> None:
    """Serve JSON with FastAPI on uvicorn."""
    import fastapi
    import uvicorn

    encoding, app = oracle(ENCODING), fastapi.FastAPI()

    @app.post("/Count")
    def count(text: str = fastapi.Body(embed=True)) -> dict[str, int]:
        return {"count": len(encoding.encode_ordinary(text))}

    @app.post("/Encode")
    def encode(text: str = fastapi.Body(embed=True)) -> dict[str, list[int]]:
        return {"ids": encoding.encode_ordinary(text)}

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[listener])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transport", choices=["grpc", "http"])
    if parser.parse_args().transport == "grpc":
        serve_grpc()
    else:
        serve_http()
