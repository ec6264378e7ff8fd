"""Server reflection, for tools such as grpcurl: `grpc.reflection.v1` and `v1alpha`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection, reflection_pb2

from bytepair_server.transport.interface import (
    Code,
    Kind,
    Method,
    Status,
    StreamCall,
    UnreadableMessage,
)

#: Both versions have the same messages; only the package differs.
SERVICE_NAMES: Final = (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
#: Maximum open streams of each worker. `max_open_streams` does not count them: they need no
#: credentials, and could leave callers none.
MAX_STREAMS: Final = 64
#: A stream ends if for this time no message comes, or its answers are not read.
IDLE_SECONDS: Final = 60.0


def methods(service_names: Sequence[str]) -> list[Method]:
    """The RPC of both versions.

    Args:
        service_names: What is served besides; their files must be loaded.
    """
    pool = descriptor_pool.Default()
    names = (*service_names, *SERVICE_NAMES)
    pool.AddSerializedFile(_file_of_v1().SerializeToString())
    servicer: Any = reflection.ReflectionServicer(names)
    # Its pool finds services and types, but no methods.
    services = {
        method.full_name: name for name in names for method in pool.FindServiceByName(name).methods
    }

    open_streams = 0

    async def handle(incoming: StreamCall) -> None:
        nonlocal open_streams
        if open_streams >= MAX_STREAMS:
            problem = "the server has reached its limit of reflection streams; try again later"
            incoming.fail(Status(Code.RESOURCE_EXHAUSTED, problem))
            await incoming.close()
            return
        open_streams += 1
        try:
            with suppress(TimeoutError):
                while await asyncio.wait_for(answer(incoming), IDLE_SECONDS):
                    pass
            with suppress(TimeoutError):
                await asyncio.wait_for(incoming.close(), IDLE_SECONDS)
        finally:
            open_streams -= 1

    async def answer(incoming: StreamCall) -> bool:
        """Answer the next message. Returns whether another may follow."""
        try:
            raw = await incoming.read()
            if raw is None:
                return False
            request = reflection_pb2.ServerReflectionRequest.FromString(raw)
        except UnreadableMessage as error:
            incoming.fail(Status(error.code, str(error)))
            return False
        except DecodeError:
            problem = "the message is not a ServerReflectionRequest"
            incoming.fail(Status(Code.INVALID_ARGUMENT, problem))
            return False
        if (symbol := request.file_containing_symbol) in services:
            request.file_containing_symbol = services[symbol]
        for response in servicer.ServerReflectionInfo(iter((request,)), None):
            response.original_request.ParseFromString(raw)
            await incoming.write(response.SerializeToString())
        return True

    return [
        Method(f"{name}/ServerReflectionInfo", Kind.BIDI_STREAM, handle, is_small=True)
        for name in SERVICE_NAMES
    ]


def _file_of_v1() -> descriptor_pb2.FileDescriptorProto:
    """The file of version 1, which the library does not have."""
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    renamed = text_format.MessageToString(file).replace("v1alpha", "v1")
    return text_format.Parse(renamed, descriptor_pb2.FileDescriptorProto())
