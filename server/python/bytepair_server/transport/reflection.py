"""Server reflection, for tools such as grpcurl: `grpc.reflection.v1` and `v1alpha`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection, reflection_pb2

from bytepair_server.transport.interface import (
    Kind,
    Method,
    Status,
    StreamCall,
    UnreadableMessage,
)

#: Both versions have the same messages; only the package differs.
SERVICE_NAMES: Final = (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
_INVALID_ARGUMENT: Final = 3
#: A stream without a message for this time ends.
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

    async def answer(incoming: StreamCall) -> None:
        while True:
            try:
                raw = await _read(incoming)
                if raw is None:
                    break
                request = reflection_pb2.ServerReflectionRequest.FromString(raw)
            except UnreadableMessage as error:
                incoming.fail(Status(error.code, str(error)))
                break
            except DecodeError:
                problem = "the message is not a ServerReflectionRequest"
                incoming.fail(Status(_INVALID_ARGUMENT, problem))
                break
            if (symbol := request.file_containing_symbol) in services:
                request.file_containing_symbol = services[symbol]
            for response in servicer.ServerReflectionInfo(iter((request,)), None):
                response.original_request.ParseFromString(raw)
                await incoming.write(response.SerializeToString())
        await incoming.close()

    return [
        Method(f"{name}/ServerReflectionInfo", Kind.BIDI_STREAM, answer, is_small=True)
        for name in SERVICE_NAMES
    ]


async def _read(incoming: StreamCall) -> bytes | None:
    """The next message; None at the end, or if none has come for too long."""
    try:
        return await asyncio.wait_for(incoming.read(), IDLE_SECONDS)
    except TimeoutError:
        return None


def _file_of_v1() -> descriptor_pb2.FileDescriptorProto:
    """The file of version 1, which the library does not have."""
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    renamed = text_format.MessageToString(file).replace("v1alpha", "v1")
    return text_format.Parse(renamed, descriptor_pb2.FileDescriptorProto())
