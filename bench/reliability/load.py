"""Callers that count texts as fast as they can, in a process of their own, so that they do not
delay the bystanders."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any, Final

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc

from bench.reliability.watch import ENCODING, TEXT

TIMEOUT_S: Final = 10.0
#: Callers on one connection: fewer than the calls that a server permits on it at once.
ON_EACH: Final = 160


async def main(target: str, text_bytes: int, at_once: int, seconds: float) -> None:
    """Print the answered, rejected and failed calls per second.

    Args:
        target: Where to call.
        text_bytes: Of each text.
        at_once: Callers; each calls again as soon as it was answered, or rejected.
        seconds: How long, after as much again as a tenth that does not count.
    """
    text = (TEXT * (1 + text_bytes // len(TEXT)))[:text_bytes]
    request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=text)
    good = rejected = failed = 0

    async def call(stub: Any) -> None:
        nonlocal good, rejected, failed
        while True:
            try:
                await stub.Count(request, timeout=TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                is_rejected = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                rejected += is_rejected
                failed += not is_rejected
            else:
                good += 1

    async with AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        stubs = []
        for _ in range(0, at_once, ON_EACH):
            channel = await stack.enter_async_context(
                grpc.aio.insecure_channel(target, options=options)
            )
            stubs.append(tokenizer_pb2_grpc.TokenizerServiceStub(channel))  # type: ignore[no-untyped-call]
        callers = [asyncio.create_task(call(stubs[i // ON_EACH])) for i in range(at_once)]
        await asyncio.sleep(seconds / 10)
        began, good, rejected, failed = monotonic(), 0, 0, 0
        await asyncio.sleep(seconds)
        took = monotonic() - began
        print(good / took, rejected / took, failed / took, flush=True)  # before they leave
        for each in callers:
            each.cancel()
        await asyncio.wait(callers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
