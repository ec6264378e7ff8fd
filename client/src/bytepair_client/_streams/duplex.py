"""A bidirectional call of grpc.aio that reports the server's status.

A write after the end of the call fails. This is normal: the server matched a stop string, or failed
the stream. grpc.aio then replaces the status by INTERNAL, even if it has arrived, and its `read`
skips the remaining responses (https://github.com/grpc/grpc/issues/36066). Here the status is
recorded when it arrives, and responses are read by iteration, which skips none.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Generic

import grpc

from bytepair_client._call import Response

#: The status arrives with the last response, or right after it.
STATUS_WITHIN_S = 5.0


class Duplex(Generic[Response]):
    """A bidirectional call with one reader and one writer."""

    def __init__(self, call: Any) -> None:
        """Wrap a grpc.aio.StreamStreamCall that has just started."""
        self._call = call
        self._answers = aiter(call)
        self._end = _End()
        call.add_done_callback(self._end.note)

    async def read(self) -> Response | None:
        """The next response; None after the last. Raises AioRpcError after the last response of a
        failed call."""
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
        """Send a request. Returns False if the call has ended; `read` reports why."""
        try:
            await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True

    async def end(self) -> None:
        """End the requests."""
        with suppress(grpc.aio.InternalError):  # it has ended already
            await self._call.done_writing()

    def cancel(self) -> None:
        """Cancel the call, unless it has ended."""
        self._call.cancel()


class _End:
    """The status that the server sent."""

    def __init__(self) -> None:
        self.known = asyncio.Event()
        self.failure: grpc.aio.AioRpcError | None = None  # None for OK

    def note(self, call: Any) -> None:
        """Record the status of the call. grpc.aio calls this whenever it sets one."""
        # The only public way to the complete status. The call has one, so this does not suspend.
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
            pass  # the reader is cancelled too
        finally:
            status.close()


def _is_of_a_write(error: grpc.aio.AioRpcError) -> bool:
    """Whether grpc.aio made this status from a failed write."""
    return (
        error.code() is grpc.StatusCode.INTERNAL
        and "execute_batch" in (error.debug_error_string() or "")
        and not error.trailing_metadata()
    )
