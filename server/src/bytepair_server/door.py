"""Where unary calls come in: those of strangers are refused by their metadata alone.

gRPC gives a unary call to its handler once the message is whole, and holds what has come of it
until then, for as long as the caller likes. So whom no key will make known is turned away before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import grpc

from bytepair_server.call import AUTHORIZATION
from bytepair_server.callers import Callers
from bytepair_server.service import SERVICE_NAME

#: By the name of each RPC.
Handlers = Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]


class Door(grpc.GenericRpcHandler):
    """Finds what handles a call, as gRPC's own generic handler does."""

    def __init__(self, callers: Callers, handlers: Handlers, refusals: Handlers) -> None:
        """Let in nobody yet.

        Args:
            callers: Who may call.
            handlers: What answers each RPC.
            refusals: What refuses it, without reading a message.
        """
        self._callers: Final = callers
        self._handlers: Final = _by_path(handlers)
        self._refusals: Final = _by_path(refusals)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """What handles a call; None if it is for somebody else."""
        handler = self._handlers.get(handler_call_details.method)
        if handler is None or not self._callers.use_keys:
            return handler
        # The last one, as `Call` reads it.
        authorization: str | bytes | None = None
        for key, value in handler_call_details.invocation_metadata:
            if key == AUTHORIZATION:
                authorization = value
        if self._callers.are_strangers(authorization):
            return self._refusals[handler_call_details.method]
        return handler


def _by_path(handlers: Handlers) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    return {f"/{SERVICE_NAME}/{rpc}": handler for rpc, handler in handlers.items()}
