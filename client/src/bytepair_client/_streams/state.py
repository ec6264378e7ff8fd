"""Everything about a stream but its input and output: its state, and what happens next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Any, Final, Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client._call import StreamCall
from bytepair_client._errors import InternalError, TokenizerError
from bytepair_client._retries import Attempts

#: The most full requests that wait for their answers to be read, or as many smaller ones as hold
#: the same. This bounds how far a source runs ahead of a reader; on the way to a distant server it
#: is a lot.
MAX_UNREAD_REQUESTS: Final = 4

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
Source = Iterable[Any] | AsyncIterable[Any]


class StreamState(Generic[Response, Plain]):
    """One stream, as far as it has come. Not safe for threads.

    Attributes:
        buffer: What is to be sent.
        source_ended: Nothing more will be put in.
        failure: What the source raised, or was wrong with what it gave; None if nothing.
        over: The reader wants no more.
        advanced: Whether the last answer was for more than all before it, on any connection.
    """

    def __init__(self, call: StreamCall[Response, Plain]) -> None:
        self.buffer = call.buffer
        self.source_ended = False
        self.failure: BaseException | None = None
        self.over = False
        self.advanced = False
        self._consumed = -1
        # Not the call itself: the source is held by whatever reads it, and dropped with that.
        self._plain = call.plain
        self._answers_each = call.answers_each
        self._read_again = call.read_again
        self._unread: deque[int] = deque()  # the size of each request whose answer was not read
        self._unread_size = 0
        self._extra: Any = None  # an answer that is valid only if the stream is not continued
        self._first: Any = None
        self._last: Any = call.method.parse(b"")

    @property
    def can_put(self) -> bool:
        """Whether the source may go on."""
        return not self.buffer.is_full

    @property
    def can_take(self) -> bool:
        """Whether a request is to be sent."""
        most = MAX_UNREAD_REQUESTS * self.buffer.max_request
        return not self.buffer.is_empty and self._unread_size < most

    @property
    def is_complete(self) -> bool:
        """Whether all has been sent that the source gave, and it ended well."""
        return self.source_ended and self.failure is None and self.buffer.is_empty

    @property
    def has_failed(self) -> bool:
        """Whether `failure` is due: the answers to all that came before it have been read."""
        if self.failure is None:
            return False
        return not self._answers_each or (self.buffer.is_empty and not self._unread)

    def take(self) -> bytes:
        """The next request; `can_take` must hold."""
        before = self.buffer.sent
        request = self.buffer.take()
        if self._answers_each:
            self._unread.append(self.buffer.sent - before)
            self._unread_size += self._unread[-1]
        return request

    @property
    def can_continue(self) -> bool:
        """Whether the stream can go on, on another connection."""
        return not self.over and (self.buffer.can_rewind or self._read_again is not None)

    def continue_elsewhere(self) -> Source | None:
        """Let another connection be sent what the last one has not settled; `can_continue`.

        Returns the source, where it is to be read again from its start; None to go on with it.
        """
        self._unread.clear()
        self._unread_size = 0
        self._extra = None
        if self.buffer.can_rewind:
            self.buffer.rewind(self._first)
            return None
        assert self._read_again is not None  # as it can continue
        self.buffer.restart()
        self.source_ended, self.failure = False, None
        return self._read_again()

    def read(self, answer: Response) -> Plain | None:
        """Note an answer. Returns its plain value; empty or None if nothing became certain.

        Raises InternalError if it is the last one, and not all that was sent has arrived.
        """
        self.advanced = False
        if not self.buffer.read(answer):
            self._extra = answer
            return None
        consumed = self._consumed_by(answer)
        self.advanced, self._consumed = consumed > self._consumed, max(consumed, self._consumed)
        if self._unread:  # the last answer has no request
            self._unread_size -= self._unread.popleft()
        if not self._answers_each or self._field(answer, "finished"):
            self.over = True
            self._check_consumed(answer)
        return self._note(answer)

    def released(self) -> Plain | None:
        """The plain value of what came with the failure of a stream that is not continued."""
        answer, self._extra = self._extra, None
        if answer is None:
            return None
        self.buffer.release(answer)
        return self._note(answer)

    def explain(self, failure: TokenizerError) -> TokenizerError:
        """Make the positions in an error of the server those of the whole stream, and say why the
        stream was not continued where it could not be."""
        self.buffer.correct(failure)
        if self._first is not None and not self.buffer.can_rewind:
            failure.add_note(
                "The stream was not resumed at another server: too much of it was pending."
            )
        return failure

    def _note(self, answer: Response) -> Plain:
        if self._first is None:
            self._first = type(answer)()
            self._first.CopyFrom(answer)
        elif self._answers_each:  # of another connection's first answer
            answer.ClearField("encoding")
            answer.ClearField("fingerprint")
        self._last = answer
        return self._plain(answer)

    def _check_consumed(self, last: Any) -> None:
        if self._field(last, "stop_matched") or self._field(last, "limit_exceeded"):
            return  # less was read, on purpose
        consumed = self._consumed_by(last)
        if consumed != self.buffer.sent:
            raise InternalError(
                f"the server answered for {consumed} of the {self.buffer.sent} ids or bytes that "
                "were sent: messages of the stream were lost; start it again",
                code=grpc.StatusCode.DATA_LOSS.name,
            )

    def _consumed_by(self, answer: Any) -> int:
        """How many ids, or bytes, an answer is for."""
        return int(
            self._field(answer, "tokens_consumed") or self._field(answer, "bytes_consumed") or 0
        )

    @staticmethod
    def _field(answer: Any, name: str) -> Any:
        """A field that not every kind of answer has."""
        return getattr(answer, name, None)

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


class BaseStream(ABC, Generic[Response, Plain]):
    """Everything about a stream but its input and output."""

    def __init__(self, client: Any, call: StreamCall[Response, Plain], requests: Any) -> None:
        """Start nothing yet. `requests` sends them, and has the StreamState as `state`."""
        self._client = client
        self._method = call.method
        self._timeout = call.timeout
        self._source: Any = call.source
        self._requests = requests
        self._attempts: Attempts = client._attempts(call.timeout)
        self._gives_lists = call.gives_lists
        self._ready: deque[Plain] = deque()  # what is given next
        self._failure: TokenizerError | None = None  # which comes after what was released

    @property
    def last(self) -> Response:
        """The last answer, a message of `bytepair.v1` with the encoding and its fingerprint; an
        empty message before the first result."""
        last: Response = self._requests.state.last
        return last

    @abstractmethod
    async def _begin(self, source: Any) -> None:
        """Begin the first attempt, and read the source."""

    @abstractmethod
    async def _answer(self, call: Any) -> Response | None:
        """The next answer of a call; None after the last. Raises TokenizerError."""

    @abstractmethod
    async def _resume(self, seconds: float) -> bool:
        """Wait, and go on over another connection. Returns False if the stream was closed
        meanwhile."""

    async def _next(self) -> Plain | None:
        """The next piece; None after the last."""
        requests = self._requests
        try:
            if self._source is not None:
                source, self._source = self._source, None
                await self._begin(source)
            while not self._ready and (call := requests.call) is not None:
                piece = await self._read(call)
                if piece and self._gives_lists:
                    self._ready.extend(cast(Any, piece))
                elif piece:
                    self._ready.append(piece)
        except BaseException:
            requests.stop(cancel=True)
            raise
        return self._ready.popleft() if self._ready else None

    async def _read(self, call: Any) -> Plain | None:
        """The piece of the next answer; None at the end, which drops the call, and if the stream
        goes on over another connection."""
        requests = self._requests
        requests.raise_failure()
        if self._failure is not None:
            raise self._failure
        try:
            response = await self._answer(call)
        except TokenizerError as failure:
            requests.raise_failure()  # for which the call was cancelled
            return await self._continue(failure)
        if response is None:
            requests.stop(cancel=False)
            return None
        piece: Plain | None = requests.read(response)
        if requests.state.advanced:
            self._attempts.progressed()
        return piece

    async def _continue(self, failure: TokenizerError) -> Plain | None:
        """Go on over another connection, or fail: after the piece that came with the failure."""
        state = self._requests.state
        seconds = self._attempts.wait(failure)
        if seconds is not None and state.can_continue and await self._resume(seconds):
            return None
        piece: Plain | None = state.released()
        await self._client._explain(failure)
        self._failure = state.explain(failure)
        return piece
