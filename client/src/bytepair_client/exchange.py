"""The state of one stream: what was sent and read, and how it goes on. It waits for nothing."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from bytepair_client.call import StreamCall

#: Requests are not sent while so many answers wait to be read. With what the outbox takes this
#: bounds how far a source runs ahead of a reader, and what comes meanwhile goes together.
MAX_UNREAD_ANSWERS = 16

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
        self._answers_each = call.answers_each
        self._sent = self._read = 0
        self._first: Any = None
        self._last: Any = call.method.parse(b"")

    @property
    def can_put(self) -> bool:
        """Whether the source may go on."""
        return not self.outbox.is_full

    @property
    def can_take(self) -> bool:
        """Whether a request is to be sent."""
        return not self.outbox.is_empty and not (
            self._answers_each and self._sent - self._read >= MAX_UNREAD_ANSWERS
        )

    @property
    def is_complete(self) -> bool:
        """Whether all has been sent that the source gave, and it ended well."""
        return self.source_ended and self.failure is None and self.outbox.is_empty

    @property
    def has_failed(self) -> bool:
        """Whether `failure` is due: the answers to all that came before it have been read."""
        if self.failure is None:
            return False
        return not self._answers_each or (self.outbox.is_empty and self._sent == self._read)

    def take(self) -> bytes:
        """The next request; `can_take` must hold."""
        self._sent += 1
        return self.outbox.take()

    def read(self, response: Response) -> Plain:
        """Note an answer.

        Returns:
            What it is to the reader; empty if nothing became certain.
        """
        self._read += 1
        self._first = self._first or response
        self._last = response
        if not self._answers_each or self._last.finished:
            self.over = True
        return self._plain(response)

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
