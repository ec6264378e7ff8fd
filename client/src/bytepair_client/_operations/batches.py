"""Batches of any size: split into requests that fit, several in flight, results in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar, cast

from bytepair.v1 import text_pb2
from google.protobuf.message import Message

from bytepair_client._call import Call, Method
from bytepair_client._errors import (
    InputTooLarge,
    InternalError,
    InvalidChat,
    InvalidUtf8,
    RequestRefused,
    ResourceExhausted,
    SpecialTokenInText,
    TemplateLimit,
    TokenizerError,
    UnknownTokenId,
)
from bytepair_client._operations.common import copied, has_more_bytes
from bytepair_client._options import NOT_GIVEN, Defaults, Fingerprint, Timeout, chosen_timeout
from bytepair_client._status import from_item, to_item
from bytepair_client._text import AllowedSpecial, DisallowedSpecial, Segments, Text, set_text

#: Requests of one batch that are under way at one time. This bounds the memory that a batch takes
#: beside its results, and keeps a server busy while the next request is made.
MAX_UNDER_WAY: Final = 4
#: The most items of one request: the server's default of `max_batch_items`.
MAX_ITEMS: Final = 1024
#: What can be wrong with one item alone.
_OF_ONE_ITEM: Final = (
    InputTooLarge,
    InvalidChat,
    InvalidUtf8,
    SpecialTokenInText,
    TemplateLimit,
    UnknownTokenId,
)

#: What answers say that is so for all items.
_NAMES: Final = {"encoding", "fingerprint", "format", "format_fingerprint"}

Progress = Callable[[int], object]
Plain = TypeVar("Plain")
Response = TypeVar("Response", bound=Message)


class TextOptions(TypedDict, total=False):
    """Options of each text of a batch."""

    encoding: str | None
    allowed_special: AllowedSpecial
    disallowed_special: DisallowedSpecial
    add_special_tokens: bool
    expected_fingerprint: Fingerprint


class TextBatchOptions(TextOptions, total=False):
    """Options of a batch of texts."""

    progress: Progress | None
    timeout: Timeout


class BatchResult(Protocol):
    """EncodeResult, DecodeResult and CountResult."""

    @property
    def error(self) -> text_pb2.Error: ...
    def HasField(self, field_name: Any) -> bool: ...  # noqa: N802 (protobuf's name)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a batch.

    Attributes:
        message: As it goes into a request; empty if it is too large for any.
        size: Bytes of text, or of the text that ids may stand for.
        alone: Makes the call for this item alone, with this timeout.
        error: Why it cannot be sent, if it cannot; its size is then too large for any request.
    """

    message: Message
    size: int
    alone: Callable[[Timeout], Call[Any, Any]]
    error: TokenizerError | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A request of a batch that failed, whose error takes the place of its results."""

    error: TokenizerError


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of each item of a request: its result, or its error.

    Attributes:
        source: An answer that names the encoding; None if there is none.
        outcomes: One for each item.
    """

    source: Any
    outcomes: list[Any]


class Batch(Generic[Response, Plain]):
    """A batch on its way. It can be carried out once."""

    def __init__(
        self,
        defaults: Defaults,
        method: Method[Response],
        options: Message,
        items: Iterable[Item],
        plain: Callable[[Any], Plain],
        *,
        timeout: Timeout,
        return_exceptions: bool,
        progress: Progress | None,
    ) -> None:
        """Send nothing yet.

        Args:
            defaults: The client's.
            method: The batch RPC.
            options: The request without its items.
            items: All of them; read as requests are made.
            plain: From a result to the plain value.
            timeout: Seconds for the whole batch; left out: the client's for each request.
            return_exceptions: Whether errors take the place of values.
            progress: Called with the number of items that are done, after each request.
        """
        self._method = method
        self._options = options
        self._items = items
        self._plain = plain
        self._timeout = chosen_timeout(defaults, timeout)
        has_deadline = timeout is not NOT_GIVEN and self._timeout is not None
        self._until = monotonic() + (self._timeout or 0) if has_deadline else None
        self._return_exceptions = return_exceptions
        self._progress = progress
        self._max_bytes = defaults.max_unary_bytes
        self._max_items = MAX_ITEMS
        self._answer: Any = method.parse(b"")
        self._outcomes: list[Any] = []

    def chunks(self, *, raises: bool) -> Iterator[list[Item]]:
        """The items of one request after another; one empty list if there are none.

        Args:
            raises: As for `add`.
        Raises:
            TokenizerError: That of an item that cannot be sent, before the items around it are.
        """
        chunk: list[Item] = []
        size = 0
        is_first = True
        for item in self._items:
            if item.error is not None and raises and not self._return_exceptions:
                raise item.error
            is_full = len(chunk) >= self._max_items or size + item.size > self._max_bytes
            if chunk and is_full:
                yield chunk
                chunk, size, is_first = [], 0, False
            chunk.append(item)
            size += item.size
        if chunk or is_first:
            yield chunk

    def flow(self, client: Any, chunk: list[Item]) -> Generator[Any, Any, Answered | Failed]:
        """Send one chunk, in several requests if the server takes less.

        Args:
            client: The BaseClient that sends it.
            chunk: From `chunks`.
        """
        try:
            return (yield from self._send(client, chunk))
        except TokenizerError as failure:
            # What is refused or closed would be so for the requests that follow.
            if not self._return_exceptions or failure.code is None:
                raise
            if isinstance(failure, RequestRefused):
                raise
            return Failed(failure)

    def _send(self, client: Any, chunk: list[Item]) -> Generator[Any, Any, Answered]:
        if len(chunk) == 1 and chunk[0].size > self._max_bytes:
            return (yield from self._send_alone(client, chunk[0]))
        request: Any = type(self._options)()
        request.CopyFrom(self._options)
        request.items.extend(item.message for item in chunk)
        try:
            answer = yield from client._unary_flow(self._method, request, self._seconds_left())
        except (InputTooLarge, ResourceExhausted) as refusal:
            if not chunk or "size" not in refusal.metadata:
                raise  # not for its size
            self._learn(refusal)
        else:
            if len(answer.results) != len(chunk):
                raise InternalError(
                    f"{len(answer.results)} results for {len(chunk)} items", code="INTERNAL"
                )
            return Answered(answer, list(answer.results))
        if len(chunk) == 1:
            return (yield from self._send_alone(client, chunk[0]))
        half = len(chunk) // 2
        first = yield from self._send(client, chunk[:half])
        second = yield from self._send(client, chunk[half:])
        return Answered(first.source or second.source, first.outcomes + second.outcomes)

    def _send_alone(self, client: Any, item: Item) -> Generator[Any, Any, Answered]:
        if item.error is not None:
            return Answered(None, [item.error])
        call = item.alone(NOT_GIVEN if self._until is None else self._seconds_left())
        try:
            answer = yield from client._flow(call)
        except _OF_ONE_ITEM as refusal:
            return Answered(None, [refusal])
        result: Any = copied(answer, type(self._answer)().results.add())
        return Answered(answer, [result])

    def _learn(self, refusal: TokenizerError) -> None:
        """Make the requests that follow no larger than the server takes."""
        field, limit = refusal.metadata.get("field"), refusal.metadata.get("limit", "")
        if limit.isdecimal() and field == "items":
            self._max_items = max(1, min(self._max_items, int(limit)))
        elif limit.isdecimal() and field in ("items.text", "items.messages"):
            self._max_bytes = max(1, min(self._max_bytes, int(limit)))

    def _seconds_left(self) -> float | None:
        return self._timeout if self._until is None else max(0.001, self._until - monotonic())

    def add(self, chunk: list[Item], came: Answered | Failed, *, raises: bool) -> None:
        """Take what came of the next chunk, in order.

        Args:
            chunk: As it was sent.
            came: What its flow returned.
            raises: Whether the error of an item is raised, unless it takes the place of a value.
        Raises:
            TokenizerError: That of the first item that failed, with its index in `item`.
        """
        if isinstance(came, Failed):
            self._outcomes += [came.error] * len(chunk)
        else:
            if came.source is not None:
                for name in _NAMES.intersection(self._answer.DESCRIPTOR.fields_by_name):
                    setattr(self._answer, name, getattr(came.source, name))
            if raises and not self._return_exceptions:
                for index, outcome in enumerate(came.outcomes, len(self._outcomes)):
                    error = _error(outcome, index)
                    if error is not None:
                        raise error
            self._outcomes += came.outcomes
        if self._progress is not None:
            self._progress(len(self._outcomes))

    def interrupted(self, failure: BaseException) -> None:
        """Note in what ends the batch how far it had come."""
        if isinstance(failure, TokenizerError) and failure.item is None and self._outcomes:
            failure.add_note(f"{len(self._outcomes)} items of the batch were done before.")

    def message(self) -> Response:
        """All results in the answer of a single request."""
        for outcome in self._outcomes:
            if isinstance(outcome, TokenizerError):
                self._answer.results.add(error=to_item(outcome))
            else:
                self._answer.results.append(outcome)
        answer: Response = self._answer
        return answer

    def values(self) -> list[Plain]:
        """The plain value, or the error, of each item in order."""
        return [
            cast(Plain, _error(outcome, index)) or self._plain(outcome)
            for index, outcome in enumerate(self._outcomes)
        ]


def text_items(
    defaults: Defaults,
    texts: Iterable[Text],
    alone: Callable[[Text, Timeout], Call[Any, Any]],
) -> Iterator[Item]:
    """The items of a batch of texts.

    Args:
        defaults: The client's.
        texts: All of them.
        alone: Makes the call for one text.
    Raises:
        TypeError: `texts` is one text, which would be a batch of its characters; or as set_text.
    """
    if isinstance(texts, str | bytes | Segments):
        raise TypeError("texts must be an iterable of texts, not one text")
    return (_text_item(defaults, index, text, alone) for index, text in enumerate(texts))


def _text_item(
    defaults: Defaults,
    index: int,
    text: Text,
    alone: Callable[[Text, Timeout], Call[Any, Any]],
) -> Item:
    message = text_pb2.TextItem()
    try:
        if isinstance(text, str) and has_more_bytes(text, defaults.max_unary_bytes):
            return Item(message, defaults.max_unary_bytes + 1, partial(alone, text))
        set_text(message, text)
    except InvalidUtf8 as error:
        error.item = index
        return Item(message, defaults.max_unary_bytes + 1, partial(alone, text), error)
    return Item(message, message.ByteSize(), partial(alone, text))


def error_of(result: BatchResult, item: int | None = None) -> TokenizerError | None:
    """The error of one result of a batch, as an exception that is not raised.

    Args:
        result: Of a batch answer that `client.with_raw_response` gave.
        item: Its index, if the error is to name it.
    Returns:
        None if the item succeeded.
    """
    return from_item(result.error, item) if result.HasField("error") else None


def _error(outcome: Any, index: int) -> TokenizerError | None:
    if not isinstance(outcome, TokenizerError):
        return error_of(outcome, index)
    if isinstance(outcome, _OF_ONE_ITEM):
        outcome.item = index
    return outcome
