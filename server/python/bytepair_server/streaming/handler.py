"""The handlers of streaming RPCs: read a message, compute, write the answer.

A stream processes one message at a time and reads the next after writing the answer. Flow control
slows a client that sends faster than it reads; the server buffers nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack, suppress
from time import perf_counter
from typing import Any, Final, Self, TypeVar

from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth.quotas import Quota
from bytepair_server.config.settings import Settings
from bytepair_server.errors import InvalidField, StreamIdle
from bytepair_server.rpc import limits
from bytepair_server.rpc.options import Options
from bytepair_server.rpc.outcome import Outcomes, Shared, trailers
from bytepair_server.rpc.service import SERVICE_NAME
from bytepair_server.streaming.decode import DecodeSession
from bytepair_server.streaming.session import Session, timed
from bytepair_server.streaming.text import CountSession, EncodeSession, SplitSession
from bytepair_server.transport.interface import Kind, Method, StreamCall, UnreadableMessage

T = TypeVar("T")
Handler = Callable[[StreamCall], Coroutine[Any, Any, None]]

#: Upper bound of an answer's size in relation to its message: ids of long tokens become text.
GROWTH: Final = 64
#: Every streaming RPC by its name in the proto.
SESSIONS: Final[dict[str, type[Session]]] = {
    "EncodeStream": EncodeSession,
    "DecodeStream": DecodeSession,
    "CountStream": CountSession,
    "SplitStream": SplitSession,
}
_KINDS: Final = {"CountStream": Kind.CLIENT_STREAM}
_NOT_JSON: Final = (
    "streams have no JSON form; send Protocol Buffers, by content-type: application/connect+proto"
)


class OpenStream:
    """One open stream: the time of its last message, and the bytes that it holds.

    Attributes:
        active_at: The event loop's time of the last message, set by the handler.
        idle: Whether it is being cancelled because it was idle.
    """

    def __init__(self, limiter: Limiter, settings: Settings) -> None:
        """Track the current task, and cancel it after `stream_idle_seconds` without a message. On
        exit the reason for its cancellation is raised."""
        self._settings: Final = settings
        self._limiter: Final = limiter
        self._idle_seconds: Final = settings.stream_idle_seconds
        self._loop: Final = asyncio.get_running_loop()
        self._task = limiter.track(is_stream=True)
        self._held = 0
        self.active_at = self._loop.time()
        self._is_working = self.idle = False
        self._timer: asyncio.TimerHandle | None = None
        if self._idle_seconds:
            self._timer = self._loop.call_later(self._idle_seconds, self._check_idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._limiter.untrack(self._task)
        del self._task  # may refer to an error that refers to this stream
        self.set_held_bytes(0)
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(error, UnreadableMessage):
            limit = self._settings.max_message_bytes
            raise limits.unreadable(error, "message", limit, "bytes") from None
        if isinstance(error, asyncio.CancelledError) and self.idle:
            raise StreamIdle(self._idle_seconds) from None

    async def working(self, work: Awaitable[T]) -> T:
        """Await work of the server, during which the stream is not idle."""
        self._is_working = True
        try:
            return await work
        finally:
            self._is_working = False
            self.active_at = self._loop.time()

    def set_held_bytes(self, size: int) -> None:
        """Set the number of bytes that the stream holds."""
        self._limiter.add_stream_bytes(size - self._held)
        self._held = size

    def _check_idle(self) -> None:
        # The timer is renewed when it fires, not at each message: that would cost more than
        # decoding the message.
        now = self._loop.time()
        left = self._idle_seconds if self._is_working else self.active_at + self._idle_seconds - now
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_idle)
            return
        self.idle = True
        self._task.cancel()


class StreamHandlers:
    """The streaming RPCs for a transport.

    Streams wait until `options` is set and the limiter opens.
    """

    def __init__(self, shared: Shared) -> None:
        self.options: Options | None = None
        self._shared: Final = shared

    def methods(self) -> list[Method]:
        """All streaming RPCs."""
        return [
            Method(f"{SERVICE_NAME}/{rpc}", _KINDS.get(rpc, Kind.BIDI_STREAM), self._handler(rpc))
            for rpc in SESSIONS
        ]

    def _handler(self, rpc: str) -> Handler:
        session_class, outcomes = SESSIONS[rpc], Outcomes(f"{SERVICE_NAME}/{rpc}", self._shared)
        shared, limiter = self._shared, self._shared.limiter

        async def handle(incoming: StreamCall) -> None:
            call = outcomes.begin(incoming)
            incoming.promise(trailers(call))
            with ExitStack() as cleanups:
                try:
                    call.caller = shared.callers.identify(call.authorization, incoming)
                    if incoming.is_json:
                        raise InvalidField("request", _NOT_JSON)
                    quota = shared.quotas.of(call.caller)
                    limiter.enter_stream()
                    cleanups.callback(limiter.leave_stream)
                    if quota is not None:
                        quota.enter(0, is_stream=True)
                        cleanups.callback(quota.leave, is_stream=True)
                    with OpenStream(limiter, shared.settings) as stream:
                        if not limiter.is_open:
                            await stream.working(limiter.wait_until_open())
                        assert self.options is not None  # the limiter opens once they are set
                        session = session_class(
                            self.options, call, shared.executor.inline_max_bytes
                        )
                        call.admitted = perf_counter()
                        try:
                            await self._process_messages(incoming, session, stream, quota)
                        finally:
                            session.record()
                    outcomes.answered(incoming, call)
                except BaseException as error:
                    outcomes.failed(incoming, call, error)
                # The stream counts as open until its caller has received the status. Otherwise a
                # caller that reads nothing could open one stream after another.
                with suppress(TimeoutError):
                    async with asyncio.timeout(shared.settings.stream_idle_seconds or None):
                        await incoming.close()

        return handle

    async def _process_messages(
        self,
        incoming: StreamCall,
        session: Session,
        stream: OpenStream,
        quota: Quota | None,
    ) -> None:
        """Process messages until the stream is over. A byte quota does not end the stream: reading
        pauses, so that flow control slows the caller."""
        read, write, take, end = incoming.read, incoming.write, session.take, session.end
        if self._shared.tracer is not None:
            take, end = timed(session.call, take), timed(session.call, end)
        now = asyncio.get_running_loop().time
        small = self._shared.executor.inline_max_bytes
        #: The answer to a message that `at_once` processed and this task must continue with.
        processed: list[bytes | None] = []

        def at_once(raw: bytes) -> bytes | None:
            """Answer a small message with a small answer, without waking the task."""
            size = len(raw)
            if size * GROWTH > small or size > session.inline_max_bytes:
                return None
            answer = take(raw)
            if answer is None or session.over or len(answer) > small:
                processed.append(answer)
                return None
            stream.active_at = now()
            return answer

        while not session.over:
            try:
                if quota is not None and (delay := quota.debt()):
                    await stream.working(asyncio.sleep(delay))
                raw = await read(at_once if quota is None else None)
            except asyncio.CancelledError:
                await self._cut_off(incoming, session, stream, processed)
                raise
            stream.active_at = now()
            if quota is not None and raw is not None:
                quota.charge(max(1, len(raw)))  # an empty one costs time too
            try:
                if processed:
                    answer = processed.pop()
                elif raw is None:
                    inline = session.inline_max_bytes >= 0
                    answer = end() if inline else await self._on_thread(stream, session, end)
                elif len(raw) <= session.inline_max_bytes:
                    if len(raw) * GROWTH > small:
                        self._shared.limiter.check_stream_bytes()
                    answer = take(raw)
                else:
                    answer = await self._on_thread(stream, session, take, raw)
            except Exception as error:
                session.fault, answer = error, session.abandon()
            if answer is None:
                continue
            if len(answer) <= small:
                await write(answer)
            else:
                stream.set_held_bytes(session.held + len(answer))
                await write(answer)
                stream.set_held_bytes(session.held)
            stream.active_at = now()
        if session.fault is not None:
            raise session.fault

    async def _on_thread(
        self,
        stream: OpenStream,
        session: Session,
        step: Callable[..., bytes | None],
        *raw: bytes,
    ) -> bytes | None:
        size = session.held + sum(map(len, raw))
        stream.set_held_bytes(size)
        self._shared.limiter.check_stream_bytes()
        try:
            return await stream.working(
                self._shared.executor.run(session.call.fairness_key, size, step, *raw)
            )
        finally:
            stream.set_held_bytes(session.held)

    async def _cut_off(
        self,
        incoming: StreamCall,
        session: Session,
        stream: OpenStream,
        processed: list[bytes | None],
    ) -> None:
        """Deliver the certain output if the server ends the stream."""
        if not stream.idle and not self._shared.limiter.is_cutting_off:
            return
        seconds = self._shared.settings.stream_idle_seconds or None
        with suppress(TimeoutError):  # the caller may read nothing
            async with asyncio.timeout(seconds):
                for answer in (*processed, None if session.over else session.abandon()):
                    if answer is not None:
                        await incoming.write(answer)
