"""Calls that travel as one: which may be joined, into what, and how the answer is taken apart.

A batch has the options of its single call, by the same names. So what a request holds beside its
content decides which calls may join, and is what their batch is made of: no option can be
forgotten, now or later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from bytepair.v1 import tokenizer_pb2
from google.protobuf.message import Message

from bytepair_client.call import Call, Method
from bytepair_client.errors import (
    DeadlineExceeded,
    InputTooLarge,
    InternalError,
    Overloaded,
    RequestRefused,
    ResourceExhausted,
    TokenizerError,
)
from bytepair_client.failures import FailedCall, cut_off, from_call, late
from bytepair_client.operations.common import error_of
from bytepair_client.operations.counting import BATCH_COUNT, COUNT
from bytepair_client.operations.decoding import BATCH_DECODE, DECODE
from bytepair_client.operations.encoding import BATCH_ENCODE, ENCODE

#: What comes of a call: its answer, its error, or None for a call that is to be sent by itself.
Outcome = Message | TokenizerError | None
#: The RPC, and the options as bytes.
Key = tuple[str, bytes]


class Future(Protocol):
    """A future of asyncio or of concurrent.futures, which is given its outcome once."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Form:
    """How calls of one RPC are joined.

    Attributes:
        content: The fields of a request that are no options; a batch has them in its items.
        batch: The RPC that takes many of them.
        request: Its request.
        put: Adds the content of a request to the items of a batch.
        single: From a result of a batch to the answer of the single call, of this encoding and
            with this fingerprint.
    """

    content: tuple[str, ...]
    batch: Method[Any]
    request: type[Message]
    put: Callable[[Any, Any], None]
    single: Callable[[Any, str, str], Message]


class Member:
    """One call that may be joined.

    Attributes:
        call: What its caller wants.
        key: Calls of the same key may join.
        size: Bytes of its request.
        future: Where its outcome goes. It is of the kind that its client waits for.
        deadline: On the monotonic clock; None for no deadline.
        joint: What it is sent with; None while it waits.
    """

    __slots__ = ("call", "deadline", "future", "joint", "key", "size")

    def __init__(self, call: Call[Any, Any], key: Key, future: Future) -> None:
        self.call: Final = call
        self.key: Final = key
        self.size: Final = call.request.ByteSize()
        self.future: Final = future
        self.deadline: Final = None if call.timeout is None else time.monotonic() + call.timeout
        self.joint: Joint | None = None

    @property
    def seconds_left(self) -> float | None:
        """Until its deadline, at least 0; None if it has none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def late(self, target: str) -> DeadlineExceeded:
        """The error of one whose deadline has passed."""
        assert self.call.timeout is not None
        return late(target, self.call.timeout)


class Joint:
    """Calls that are sent together; or one, as it is.

    Attributes:
        members: Whose they are, in the order of the items.
        key: That of all members.
        method: Which RPC.
        wanted: How many still wait for their outcome.
        sent: What sends it, once that has begun; it has a `cancel()`.
    """

    def __init__(self, members: list[Member]) -> None:
        for member in members:
            member.joint = self
        single = members[0].call.method
        self._form: Final = FORMS[single.path] if len(members) > 1 else None
        self.members: Final = members
        self.key: Final = members[0].key
        self.method: Final = single if self._form is None else self._form.batch
        self.wanted = len(members)
        self.sent: Any = None

    @property
    def timeout(self) -> float | None:
        """Seconds until the last of the deadlines; None if a member has none.

        Whoever has less waits no longer for that: every caller looks at its own deadline.
        """
        last = 0.0
        for member in self.members:
            if member.deadline is None:
                return None
            last = max(last, member.deadline)
        return max(0.0, last - time.monotonic())

    def request(self) -> Message:
        """What is sent."""
        single: Message = self.members[0].call.request
        if self._form is None:
            return single
        options = type(single).FromString(self.key[1]).ListFields()
        batch: Any = self._form.request(**{field.name: value for field, value in options})
        for member in self.members:
            self._form.put(batch.items, member.call.request)
        return cast(Message, batch)

    def answered(self, answer: Any, request_id: str | None) -> None:
        """Give every member its own part of the answer.

        Args:
            answer: To `request`.
            request_id: The server's name for the call, for errors of items.
        """
        if self._form is None:
            self._settle(self.members[0], answer)
            return
        if len(answer.results) != len(self.members):
            self.disbanded()  # whose is whose?
            return
        encoding, fingerprint = answer.encoding, answer.fingerprint
        for member, result in zip(self.members, answer.results, strict=True):
            error = error_of(result)
            if error is None:
                self._settle(member, self._form.single(result, encoding, fingerprint))
            else:
                error.request_id = request_id
                self._settle(member, error)

    def failed(self, failed: FailedCall, target: str) -> TokenizerError:
        """Tell every member why there is no answer, or that it is to go by itself.

        Args:
            failed: The exception that grpc raised, or the call that ended so.
            target: Whom the client calls, for messages.
        Returns:
            Why there is none.
        """
        why = from_call(failed, target=target, timeout=self.timeout)
        if self._form is not None and may_be_of_the_batch(why):
            self.disbanded()
        for member in self.members:
            error = from_call(failed, target=target, timeout=member.call.timeout)
            error.__cause__ = failed if isinstance(failed, BaseException) else None
            self._settle(member, error)
        return why

    def cut_off(self, target: str) -> None:
        """Tell every member that its client was closed."""
        for member in self.members:
            self._settle(member, cut_off(target))

    def disbanded(self) -> None:
        """Let every member go by itself."""
        for member in self.members:
            self._settle(member, None)

    @staticmethod
    def _settle(member: Member, outcome: Outcome) -> None:
        if not member.future.done():
            member.future.set_result(outcome)


def key_of(call: Call[Any, Any]) -> Key | None:
    """What must be equal of calls that are joined; None for one that cannot be joined."""
    form = FORMS.get(call.method.path)
    if form is None or call.request.ByteSize() > MAX_MEMBER_BYTES:
        return None
    options = type(call.request)()
    options.CopyFrom(call.request)
    for name in form.content:
        options.ClearField(name)
    return call.method.path, options.SerializeToString(deterministic=True)


def may_be_of_the_batch(error: TokenizerError) -> bool:
    """Whether a call whose batch ended with `error` might not have ended so by itself.

    A batch is larger than each of its items, one of them may be what a server stumbles over, and
    a proxy may let the single RPC through alone. OVERLOADED asks for less, not for more calls.
    """
    if isinstance(error, RequestRefused):
        return isinstance(error, InputTooLarge) or error.reason is None
    return isinstance(error, InternalError | ResourceExhausted) and not isinstance(
        error, Overloaded
    )


#: A larger call goes by itself: joining saves what a call costs whatever its size, and that is
#: little beside the work on so much text.
MAX_MEMBER_BYTES: Final = 16 * 1024


def _put_text(items: Any, request: Any) -> None:
    item = items.add(text=request.text)
    if request.segments:
        item.segments.MergeFrom(request.segments)


def _put_ids(items: Any, request: Any) -> None:
    items.add().ids.MergeFrom(request.ids)


def _encoded(result: tokenizer_pb2.EncodeResult, encoding: str, fingerprint: str) -> Message:
    single = tokenizer_pb2.EncodeResponse(encoding=encoding, fingerprint=fingerprint)
    single.ids.MergeFrom(result.ids)
    single.offsets.MergeFrom(result.offsets)
    return single


def _decoded(result: tokenizer_pb2.DecodeResult, encoding: str, fingerprint: str) -> Message:
    single = tokenizer_pb2.DecodeResponse(encoding=encoding, fingerprint=fingerprint)
    if result.WhichOneof("outcome") == "data":
        single.data = result.data
    else:
        single.text = result.text
    return single


def _counted(result: tokenizer_pb2.CountResult, encoding: str, fingerprint: str) -> Message:
    return tokenizer_pb2.CountResponse(
        count=result.count,
        limit_exceeded=result.limit_exceeded,
        encoding=encoding,
        fingerprint=fingerprint,
    )


_TEXT: Final = ("text", "segments")
#: By the path of the single RPC.
FORMS: Final = {
    ENCODE.path: Form(_TEXT, BATCH_ENCODE, tokenizer_pb2.BatchEncodeRequest, _put_text, _encoded),
    DECODE.path: Form(("ids",), BATCH_DECODE, tokenizer_pb2.BatchDecodeRequest, _put_ids, _decoded),
    COUNT.path: Form(_TEXT, BATCH_COUNT, tokenizer_pb2.BatchCountRequest, _put_text, _counted),
}
