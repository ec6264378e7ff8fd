"""Callers who count texts as fast as they can, in a process of their own, so that their work is
not the wait of those who are watched."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc

from bench.reliability.watch import ENCODING, TEXT

TIMEOUT_S = 10.0


def main(target: str, text_bytes: int, at_once: int, seconds: float) -> None:
    """Print the calls that were answered and that were shed, each by second."""
    text = (TEXT * (1 + text_bytes // len(TEXT)))[:text_bytes]
    request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=text)
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(at_once) as pool:
        stub: Any = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
        until = monotonic() + seconds

        def run() -> tuple[int, int]:
            good = shed = 0
            while monotonic() < until:
                try:
                    stub.Count(request, timeout=TIMEOUT_S)
                    good += 1
                except grpc.RpcError as error:
                    code: grpc.StatusCode = error.code()
                    shed += code is grpc.StatusCode.RESOURCE_EXHAUSTED
                    sleep(0.02)  # a patient client would wait for RetryInfo's 250 ms
            return good, shed

        done = [each.result() for each in [pool.submit(run) for _ in range(at_once)]]
    print(*(sum(part) / seconds for part in zip(*done, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
