"""Server reflection, for tools such as grpcurl: `grpc.reflection.v1` and `v1alpha`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection, reflection_pb2

from bytepair_server.transport.interface import Kind, Method, Status, StreamCall

#: Both versions have the same messages; only the service's name differs.
SERVICE_NAMES: Final = (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
_INVALID_ARGUMENT: Final = 3


def methods(service_names: Sequence[str]) -> list[Method]:
    """The RPC of both versions.

    Args:
        service_names: What is served besides; their files must be loaded.
    """
    servicer: Any = reflection.ReflectionServicer((*service_names, reflection.SERVICE_NAME))

    async def answer(incoming: StreamCall) -> None:
        while (raw := await incoming.read()) is not None:
            try:
                request = reflection_pb2.ServerReflectionRequest.FromString(raw)
            except DecodeError:
                problem = "the message is not a ServerReflectionRequest"
                incoming.fail(Status(_INVALID_ARGUMENT, problem))
                break
            for response in servicer.ServerReflectionInfo(iter((request,)), None):
                await incoming.write(response.SerializeToString())
        await incoming.close()

    return [
        Method(f"{name}/ServerReflectionInfo", Kind.BIDI_STREAM, answer) for name in SERVICE_NAMES
    ]
