"""A bidirectional call of grpc.aio, whose status is reported as the server sent it.

A write that crosses the end of the call fails, which is nothing unusual: the server matched a
stop string, or found a fault. grpc.aio then puts INTERNAL in the place of the status, even of one
that was there already, and its `read` passes over the answers that are still to be read
(https://github.com/grpc/grpc/issues/36066). So here the status is noted at the moment that it
arrives, and answers are read by iteration, which goes on to the last of them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

#: The status comes with the end of the answers, or right after it.
STATUS_WITHIN_S = 5.0

Response = TypeVar("Response", bound=Message)


class Duplex(Generic[Response]):
    """One such call, for one reader and one writer."""

    def __init__(self, call: Any) -> None:
        """Take over a grpc.aio.StreamStreamCall that has just begun."""
        self._call = call
        self._answers = aiter(call)
        self._end = _End()
        call.add_done_callback(self._end.note)

    async def read(self) -> Response | None:
        """The next answer; None after the last. Raises AioRpcError if the call failed, after its
        last answer."""
        try:
            response: Response = await anext(self._answers)
            return response
        except StopAsyncIteration:
            return None
        except grpc.aio.AioRpcError as error:
            if not _is_of_a_write(error):
                raise
            try:
                await asyncio.wait_for(self._end.known.wait(), STATUS_WITHIN_S)
            except TimeoutError:
                raise error from None
            if self._end.failure is not None:
                raise self._end.failure from None
            return None

    async def write(self, request: bytes) -> bool:
        """Send a request. Returns False if the call has ended: the reader gets the status."""
        try:
            await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True

    async def end(self) -> None:
        """Say that there are no more requests."""
        with suppress(grpc.aio.InternalError):  # it has ended already
            await self._call.done_writing()

    def cancel(self) -> None:
        """Cancel the call, unless it has ended."""
        self._call.cancel()


class _End:
    """How a call ended, by the server's word."""

    def __init__(self) -> None:
        self.known = asyncio.Event()
        self.failure: grpc.aio.AioRpcError | None = None  # none if it ended well

    def note(self, call: Any) -> None:
        """Look at the status that the call has now: grpc.aio calls this for every one."""
        # The one public way to the whole status. It waits for nothing here, as a status is
        # there, so one step takes it to its end.
        status = call.wait_for_connection()
        try:
            status.send(None)
        except StopIteration:
            self.known.set()
        except grpc.aio.AioRpcError as error:
            if not _is_of_a_write(error):
                self.failure = error
                self.known.set()
        except asyncio.CancelledError:
            pass  # so is the reader
        finally:
            status.close()


def _is_of_a_write(error: grpc.aio.AioRpcError) -> bool:
    """Whether grpc.aio made up this status for a write that failed."""
    return (
        error.code() is grpc.StatusCode.INTERNAL
        and "execute_batch" in (error.debug_error_string() or "")
        and not error.trailing_metadata()
    )
