"""The state of one stream: what was sent and read, and how it goes on. It waits for nothing."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from bytepair_client._call import StreamCall
from bytepair_client._errors import InternalError

#: So many full requests may wait for their answers to be read, or as many smaller ones as come
#: to the same. This bounds how far a source runs ahead of a reader; on the way to a server far
#: away it is a lot.
MAX_UNREAD_REQUESTS = 4
#: So much is kept for another attempt while nothing has been answered: a stream of many answers
#: sends no more than that before, and one of a single answer is hardly refused later.
MAX_KEPT_REQUESTS = MAX_UNREAD_REQUESTS + 1

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class Exchange(Generic[Response, Plain]):
    """One stream, as far as it has come. Not safe for threads.

    Attributes:
        outbox: What waits to be sent.
        source_ended: Nothing more will be put in.
        failure: What the source raised, or was wrong with what it gave; None if nothing.
        over: The reader wants no more.
    """

    def __init__(self, call: StreamCall[Response, Plain]) -> None:
        self.outbox = call.outbox
        self.source_ended = False
        self.failure: BaseException | None = None
        self.over = False
        self._plain = call.plain
        self._consumed = call.consumed
        self._answers_each = call.answers_each
        self._unread: deque[int] = deque()  # what each request held whose answer was not read
        self._unread_size = 0
        self._again: deque[bytes] = deque()  # what another attempt sends before all else
        # All requests so far; None once there is an answer, or they are more than is kept.
        self._sent: list[bytes] | None = []
        self._first: Any = None
        self._last: Any = call.method.parse(b"")

    @property
    def can_put(self) -> bool:
        """Whether the source may go on."""
        return not self.outbox.is_full

    @property
    def can_take(self) -> bool:
        """Whether a request is to be sent."""
        most = MAX_UNREAD_REQUESTS * self.outbox.max_request
        return bool(self._again) or (not self.outbox.is_empty and self._unread_size < most)

    @property
    def is_complete(self) -> bool:
        """Whether all has been sent that the source gave, and it ended well."""
        is_empty = self.outbox.is_empty and not self._again
        return self.source_ended and self.failure is None and is_empty

    @property
    def has_failed(self) -> bool:
        """Whether `failure` is due: the answers to all that came before it have been read."""
        if self.failure is None:
            return False
        return not self._answers_each or (self.outbox.is_empty and not self._unread)

    def take(self) -> bytes:
        """The next request; `can_take` must hold."""
        if self._again:
            return self._again.popleft()
        before = self.outbox.taken
        request = self.outbox.take()
        if self._answers_each:
            self._unread.append(self.outbox.taken - before)
            self._unread_size += self._unread[-1]
        if self._sent is not None:
            self._sent.append(request)
            if self.outbox.taken > MAX_KEPT_REQUESTS * self.outbox.max_request:
                self._sent = None
        return request

    @property
    def can_begin_again(self) -> bool:
        """Whether another attempt can send all that this one did: nothing was answered yet."""
        return self._sent is not None and not self.over

    def begin_again(self) -> None:
        """Let what was sent be sent once more, on another attempt; `can_begin_again` must hold."""
        assert self._sent is not None  # as it may begin again
        self._again = deque(self._sent)

    def read(self, response: Response) -> Plain:
        """Note an answer.

        Returns:
            What it is to the reader; empty if nothing became certain.
        Raises:
            InternalError: It is the last one, and not all that was sent has arrived.
        """
        self._sent = None
        if self._unread:  # the last answer has no request
            self._unread_size -= self._unread.popleft()
        self._first = self._first or response
        self._last = response
        if not self._answers_each or self._last.finished:
            self.over = True
            self._check_consumed(response)
        return self._plain(response)

    def _check_consumed(self, last: Response) -> None:
        consumed, sent = self._consumed(last), self.outbox.taken
        if consumed is not None and consumed != sent:
            raise InternalError(
                f"the stream was answered for {consumed} of the {sent} ids or bytes that were "
                "sent: the others were lost on their way, so begin it again",
                code=grpc.StatusCode.DATA_LOSS.name,
            )

    @property
    def last(self) -> Response:
        """The last answer, with the encoding and fingerprint that the first one named; an
        empty message before there is one."""
        last: Any = type(self._last)()
        last.CopyFrom(self._last)
        if self._first is not None:
            last.encoding, last.fingerprint = self._first.encoding, self._first.fingerprint
        answer: Response = last
        return answer
