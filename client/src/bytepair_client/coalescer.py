"""Calls of many threads, joined into few."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from bytepair_client.call import Call, Method
from bytepair_client.errors import ClientClosed, TokenizerError
from bytepair_client.failures import request_id_of
from bytepair_client.joint import Joint, Key, Member, Outcome
from bytepair_client.lanes import Lanes


class Coalescer:
    """Sends the calls of a TokenizerClient, many as one where they come together.

    A call that finds the channel idle is sent by its own thread, as without this. The others
    wait; a batch is sent by whichever thread finds that it is to leave, and gRPC's own thread
    gives out what it is answered.
    """

    def __init__(
        self,
        lanes: Lanes,
        target: str,
        *,
        send: Callable[[Call[Any, Any], float | None], Any],
        start: Callable[[Method[Any], Message, float | None], Any],
    ) -> None:
        """Have nothing under way.

        Args:
            lanes: What decides who waits.
            target: Whom the client calls, for messages.
            send: Sends a call by itself, and waits so many seconds for its answer.
            start: Begins an RPC with this request, which ends within so many seconds; the
                future of gRPC that it returns is its answer.
        """
        self._lanes: Final = lanes
        self._lock: Final = Lock()  # of the lanes, and of what joints say of themselves
        self._target: Final = target
        self._send: Final = send
        self._start: Final = start

    def run(self, call: Call[Any, Any], key: Key) -> Any:
        """Carry out a call that may be joined.

        Returns:
            Its answer.
        Raises:
            TokenizerError: As the call by itself would.
        """
        with self._lock:
            alone = self._lanes.try_alone(key)
            if not alone:
                future: Future[Outcome] = Future()
                member = Member(call, key, future)
                leaving = self._lanes.gather(member)
                is_first = self._lanes.is_first(member)
        if alone:
            try:
                return self._send(call, call.timeout)
            finally:
                self._ended(key)
        self._carry(leaving)
        outcome = self._outcome(member, future, is_first)
        if outcome is None:
            return self._send(call, member.seconds_left)
        if isinstance(outcome, TokenizerError):
            raise outcome
        return outcome

    def _outcome(self, member: Member, future: Future[Outcome], is_first: bool) -> Outcome:
        try:
            left = member.seconds_left
            if is_first and (left is None or left > self._lanes.max_wait):
                with suppress(TimeoutError):
                    return future.result(self._lanes.max_wait)
                with self._lock:
                    leaving = self._lanes.overdue(member)
                self._carry(leaving)
            return future.result(member.seconds_left)
        except TimeoutError:
            return member.late(self._target)
        finally:
            if not future.done():  # its deadline has passed, or its thread was interrupted
                self._give_up(member)

    def _give_up(self, member: Member) -> None:
        leaving, unwanted = None, None
        with self._lock:
            if member.joint is None:
                leaving = self._lanes.give_up(member)
            else:
                member.joint.wanted -= 1
                unwanted = None if member.joint.wanted else member.joint.sent
        self._carry(leaving)
        if unwanted is not None:
            unwanted.cancel()

    def _carry(self, joint: Joint | None) -> None:
        """Send what leaves, without waiting for its answer."""
        if joint is None:
            return
        try:
            sent = self._start(joint.method, joint.request(), joint.timeout)
        except Exception as error:
            self._ended(joint.key)
            if isinstance(error, ClientClosed):
                joint.cut_off(self._target)
            else:
                joint.disbanded()  # whom it concerns will see it again
            return
        with self._lock:
            joint.sent = sent
            is_wanted = joint.wanted > 0
        if not is_wanted:
            sent.cancel()
        sent.add_done_callback(partial(self._arrived, joint))

    def _arrived(self, joint: Joint, sent: Any) -> None:
        self._ended(joint.key)  # first: others leave while these are told
        try:
            if sent.code() is grpc.StatusCode.OK:
                joint.answered(sent.result(), request_id_of(sent.trailing_metadata()))
            else:
                why = joint.failed(sent, self._target)
                with self._lock:
                    self._lanes.learn(why)
        finally:
            joint.disbanded()  # whoever was told nothing

    def _ended(self, key: Key) -> None:
        with self._lock:
            leaving = self._lanes.ended(key)
        self._carry(leaving)
