"""Calls of many tasks, joined into few."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

import grpc
from google.protobuf.message import Message

from bytepair_client.aio_stream import is_being_cancelled
from bytepair_client.call import Call, Method
from bytepair_client.errors import ClientClosed, TokenizerError
from bytepair_client.failures import FailedCall, request_id_of
from bytepair_client.joint import Joint, Key, Member, Outcome
from bytepair_client.lanes import Lanes


class AsyncCoalescer:
    """Sends the calls of an AsyncTokenizerClient, many as one where they come together.

    A call that finds the channel idle is sent by its own task, as without this. The others wait;
    each batch has a task that sends it and gives out what it is answered.
    """

    def __init__(
        self,
        lanes: Lanes,
        target: str,
        *,
        send: Callable[[Call[Any, Any], float | None], Awaitable[Any]],
        start: Callable[[Method[Any], Message, float | None], Any],
    ) -> None:
        """Have nothing under way.

        Args:
            lanes: What decides who waits.
            target: Whom the client calls, for messages.
            send: Sends a call by itself, and waits so many seconds for its answer.
            start: Begins an RPC with this request, which ends within so many seconds; the
                call of gRPC that it returns is awaited for its answer.
        """
        self._lanes: Final = lanes
        self._target: Final = target
        self._send: Final = send
        self._start: Final = start
        self._tasks: Final[set[asyncio.Task[None]]] = set()  # the loop's own references are weak

    async def run(self, call: Call[Any, Any], key: Key) -> Any:
        """Carry out a call that may be joined.

        Returns:
            Its answer.
        Raises:
            TokenizerError: As the call by itself would.
        """
        if self._lanes.try_alone(key):
            try:
                return await self._send(call, call.timeout)
            finally:
                self._carry(self._lanes.ended(key))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        member = Member(call, key, future)
        self._carry(self._lanes.gather(member))
        timers = []
        if call.timeout is not None:
            timers.append(loop.call_later(call.timeout, self._late, member))
        if self._lanes.is_first(member):
            timers.append(loop.call_later(self._lanes.max_wait, self._overdue, member))
        try:
            outcome = await future
        except asyncio.CancelledError:
            if future.cancelled():  # and not given its outcome in the same moment
                self._give_up(member)
            raise
        finally:
            for timer in timers:
                timer.cancel()
        if outcome is None:
            return await self._send(call, member.seconds_left)
        if isinstance(outcome, TokenizerError):
            raise outcome
        return outcome

    def _late(self, member: Member) -> None:
        if not member.future.done():
            member.future.set_result(member.late(self._target))
            self._give_up(member)

    def _overdue(self, member: Member) -> None:
        self._carry(self._lanes.overdue(member))

    def _give_up(self, member: Member) -> None:
        if member.joint is None:
            self._carry(self._lanes.give_up(member))
            return
        member.joint.wanted -= 1
        if not member.joint.wanted:
            member.joint.sent.cancel()

    def _carry(self, joint: Joint | None) -> None:
        """Send what leaves, without waiting for its answer."""
        if joint is None:
            return
        joint.sent = task = asyncio.get_running_loop().create_task(self._exchange(joint))
        self._tasks.add(task)
        # Not at the end of the task, which may be cancelled before it begins.
        task.add_done_callback(partial(self._ended, joint))

    def _ended(self, joint: Joint, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        joint.disbanded()  # whoever was told nothing
        self._carry(self._lanes.ended(joint.key))

    async def _exchange(self, joint: Joint) -> None:
        try:
            sent = self._start(joint.method, joint.request(), joint.timeout)
            answer = await sent
            joint.answered(answer, request_id_of(await sent.trailing_metadata()))
        except grpc.aio.AioRpcError as failed:
            self._lanes.learn(joint.failed(cast(FailedCall, failed), self._target))
        except ClientClosed:
            joint.cut_off(self._target)
        except TokenizerError:
            joint.disbanded()  # whom it concerns will see it again
        except asyncio.CancelledError:  # by close(), or because nobody waits any more
            joint.cut_off(self._target)
            if is_being_cancelled():
                raise
