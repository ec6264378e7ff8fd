"""The RPCs: protobuf to Python and back. Independent of gRPC, threads and statuses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, Literal

from bytepair.v1 import chat_pb2, context_pb2, text_pb2, token_pb2, tokenizer_pb2
from bytepair_engine import InvalidOption, UnknownTokenId
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from bytepair_server.auth.policy import AS_TEXT, REJECT, Policy, SpecialRule
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.settings import Settings
from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.observability.metrics import POLICY_ACTIONS
from bytepair_server.rpc import content as contents
from bytepair_server.rpc import describing, limits, wire, wire_fields
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.chat_messages import parts_of, take_chat
from bytepair_server.rpc.chat_service import ChatService
from bytepair_server.rpc.content import Content
from bytepair_server.rpc.context_service import ContextService
from bytepair_server.rpc.options import Options, limit_of
from bytepair_server.rpc.parsed import (
    ParsedIds,
    ParsedItems,
    ParsedText,
    ParsedTexts,
    take_ids,
    take_items,
    take_text,
    take_texts,
)
from bytepair_server.rpc.segments import Part, Unit
from bytepair_server.rpc.status import Failure, failure_of

_UNITS: Final[dict[int, Unit | None]] = {
    text_pb2.OFFSET_UNIT_UNSPECIFIED: None,
    text_pb2.OFFSET_UNIT_NONE: None,
    text_pb2.OFFSET_UNIT_BYTE: "byte",
    text_pb2.OFFSET_UNIT_CODE_POINT: "code_point",
    text_pb2.OFFSET_UNIT_UTF16: "utf16",
}

_SERVICE: Final = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"]
_CHAT_SERVICE: Final = chat_pb2.DESCRIPTOR.services_by_name["ChatService"]
SERVICE_NAME: Final = _SERVICE.full_name

_HasText = tokenizer_pb2.EncodeRequest | tokenizer_pb2.CountRequest | text_pb2.TextItem


#: Answers that end with the name and the fingerprint of the encoding.
_NAMING: Final = (
    tokenizer_pb2.EncodeResponse,
    tokenizer_pb2.BatchEncodeResponse,
    tokenizer_pb2.CountResponse,
    tokenizer_pb2.BatchCountResponse,
)


class Service:
    """The RPCs of `bytepair.v1.TokenizerService`: parsed request to serialised answer.

    Thread-safe.
    """

    def __init__(self, settings: Settings, catalog: Catalog, policy: Policy) -> None:
        self.options: Final = Options(settings, catalog, policy)
        self.chat: Final = ChatService(settings, catalog, policy)
        self.context: Final = ContextService(settings, catalog, self.options)
        self._tokens: Final = describing.TokenService(self.options)
        self._settings: Final = settings
        self._policy: Final = policy
        self._described: Final = {
            entry.name: describing.encoding(entry) for entry in catalog.entries
        }
        # The serialised end of answers, which is constant for an encoding.
        self._names: Final = {
            (answer, entry.name): answer(
                encoding=entry.name, fingerprint=entry.fingerprint
            ).SerializeToString()
            for answer in _NAMING
            for entry in catalog.entries
        }

    # Text to ids

    def encode(self, parsed: ParsedText[tokenizer_pb2.EncodeRequest], call: Call) -> bytes:
        request = parsed.request
        entry, rule = self.options.text(request, call, REJECT)
        unit = _unit(request.offsets)
        content = self._content(request, parsed.text, entry, call)
        self._check_size("text", contents.utf8_size(content), call)
        _record_special(entry, [content], rule, call)
        fields, call.tokens = contents.encode(entry.encoding, content, rule, unit)
        return fields + self._names[tokenizer_pb2.EncodeResponse, entry.name]

    def batch_encode(
        self, parsed: ParsedTexts[tokenizer_pb2.BatchEncodeRequest], call: Call
    ) -> bytes:
        request = parsed.request
        entry, rule = self.options.text(request, call, REJECT)
        unit = _unit(request.offsets)
        parts = []
        found = self._contents(parsed, entry, call)
        _record_special(entry, found, rule, call)
        for index, content in enumerate(found):
            try:
                fields, tokens = contents.encode(entry.encoding, _valid(content), rule, unit)
            except InvalidText as error:
                raise error.in_item(index) from None
            except Exception as error:
                failure = _item_failure(error, call).item_error()
                fields = tokenizer_pb2.EncodeResult(error=failure).SerializeToString()
            else:
                call.tokens += tokens
            parts.append(wire_fields.element(wire_fields.RESULTS, fields))
        parts.append(self._names[tokenizer_pb2.BatchEncodeResponse, entry.name])
        return b"".join(parts)

    def count(self, parsed: ParsedText[tokenizer_pb2.CountRequest], call: Call) -> bytes:
        request = parsed.request
        entry, rule = self.options.text(request, call, AS_TEXT)
        content = self._content(request, parsed.text, entry, call)
        self._check_size("text", contents.utf8_size(content), call)
        _record_special(entry, [content], rule, call)
        count, exceeded = contents.count(entry.encoding, content, rule, limit_of(request))
        call.tokens = count
        return _counted(count, exceeded) + self._names[tokenizer_pb2.CountResponse, entry.name]

    def batch_count(
        self, parsed: ParsedTexts[tokenizer_pb2.BatchCountRequest], call: Call
    ) -> bytes:
        request = parsed.request
        entry, rule = self.options.text(request, call, AS_TEXT)
        limit = limit_of(request)
        found = self._contents(parsed, entry, call)
        _record_special(entry, found, rule, call)
        if parsed.texts is not None and not rule.disallowed:
            # No item can fail on its own.
            counts = contents.count_texts(entry.encoding, parsed.texts, rule, limit)
            call.tokens = sum(counts)
            parts = [_count_result(each, limit is not None and each > limit) for each in counts]
        else:
            parts = []
            for index, content in enumerate(found):
                try:
                    count, exceeded = contents.count(entry.encoding, _valid(content), rule, limit)
                except InvalidText as error:
                    raise error.in_item(index) from None
                except Exception as error:
                    failure = _item_failure(error, call).item_error()
                    fields = tokenizer_pb2.CountResult(error=failure).SerializeToString()
                    parts.append(wire_fields.element(wire_fields.RESULTS, fields))
                else:
                    parts.append(_count_result(count, exceeded))
                    call.tokens += count
        parts.append(self._names[tokenizer_pb2.BatchCountResponse, entry.name])
        return b"".join(parts)

    # Ids to text

    def decode(self, parsed: ParsedIds, call: Call) -> bytes:
        request, ids = parsed.request, parsed.ids
        entry, errors = self.options.decode(request, call)
        limits.check("ids", len(ids), self._settings.max_ids, "ids")
        decoded = _decode(entry, ids, errors, request.skip_special_tokens)
        call.tokens = len(ids)
        response = tokenizer_pb2.DecodeResponse(encoding=entry.name, fingerprint=entry.fingerprint)
        if isinstance(decoded, str):
            response.text = decoded
        else:
            response.data = decoded
        return response.SerializeToString()

    def batch_decode(self, parsed: ParsedItems, call: Call) -> bytes:
        request, items = parsed.request, parsed.items
        entry, errors = self.options.decode(request, call)
        settings = self._settings
        limits.check("items", len(items), settings.max_batch_items, "items")
        limits.check("items.ids", sum(map(len, items)), settings.max_ids, "ids")
        response = tokenizer_pb2.BatchDecodeResponse(
            encoding=entry.name, fingerprint=entry.fingerprint
        )
        for ids in items:
            result = response.results.add()
            try:
                decoded = _decode(entry, ids, errors, request.skip_special_tokens)
            except Exception as error:
                result.error.CopyFrom(_item_failure(error, call).item_error())
                continue
            call.tokens += len(ids)
            if isinstance(decoded, str):
                result.text = decoded
            else:
                result.data = decoded
        return response.SerializeToString()

    # Encodings and tokens

    def list_encodings(self, request: tokenizer_pb2.ListEncodingsRequest, call: Call) -> bytes:
        del request, call
        response = tokenizer_pb2.ListEncodingsResponse(encodings=self._described.values())
        return response.SerializeToString()

    def get_encoding(self, request: tokenizer_pb2.GetEncodingRequest, call: Call) -> bytes:
        entry = self.options.entry(request.encoding, "", call)
        response = tokenizer_pb2.GetEncodingResponse(encoding=self._described[entry.name])
        return response.SerializeToString()

    def get_token(self, request: token_pb2.GetTokenRequest, call: Call) -> bytes:
        return self._tokens.get(request, call)

    # Text

    def _content(self, item: _HasText, text: str | bytes, entry: Entry, call: Call) -> Content:
        if not item.segments:
            return text
        if text:
            raise InvalidField("segments", "text and segments are both set; set one of them")
        limit = self._settings.max_segments
        limits.check("segments", len(item.segments), limit, "segments")
        parts = []
        for index, segment in enumerate(item.segments):
            kind = segment.WhichOneof("content")
            if kind == "text":
                parts.append(Part(segment.text))
            elif kind == "special_token":
                self._policy.permit(
                    call.caller,
                    entry,
                    (segment.special_token,),
                    f"segments[{index}].special_token",
                )
                call.policy["allowed"] = None
                parts.append(Part(segment.special_token, is_special_token=True))
            else:
                raise InvalidField(f"segments[{index}]", "must set text or special_token")
        return parts

    def _contents(
        self, parsed: ParsedTexts[Any], entry: Entry, call: Call
    ) -> Sequence[Content | Exception]:
        """The content of each item, or its error."""
        settings = self._settings
        if parsed.texts is not None:
            limits.check("items", len(parsed.texts), settings.max_batch_items, "items")
            self._check_size("items.text", sum(map(len, parsed.texts)), call)
            return parsed.texts
        items = parsed.request.items
        limits.check("items", len(items), settings.max_batch_items, "items")
        total = sum(len(item.segments) for item in items)
        limits.check("items.segments", total, settings.max_segments, "segments")
        found: list[Content | Exception] = []
        for item in items:
            try:
                found.append(self._content(item, item.text, entry, call))
            except Exception as error:
                _item_failure(error, call)
                found.append(error)
        good = (content for content in found if not isinstance(content, Exception))
        self._check_size("items.text", sum(map(contents.utf8_size, good)), call)
        return found

    def _check_size(self, field: str, size: int, call: Call) -> None:
        limits.check(field, size, self._settings.max_input_bytes, "bytes")
        call.input_bytes = size


@cache
def _response_class(request: str) -> type[Message]:
    rpcs = (*_SERVICE.methods, *_CHAT_SERVICE.methods)
    (rpc,) = (each for each in rpcs if each.input_type.full_name == request)
    return GetMessageClass(rpc.output_type)


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: its request class, its parser and the function that computes its answer.

    Attributes:
        is_count: Whether it only counts. Nearly all of its work is then in the engine, which a
            `CancelScope` can stop.
    """

    request_class: type[Message]
    function: Callable[[Service, Any, Call], bytes]
    _read: Callable[[type[Any], bytes], Any] = wire.parse
    _parts: Callable[[Any], int] = lambda request: (
        0 if isinstance(request, Message) else request.parts
    )
    is_count: bool = False

    def read(self, raw: bytes) -> Any:
        """Parse a request for `function`. Raises like `wire.parse`."""
        return self._read(self.request_class, raw)

    @property
    def response_class(self) -> type[Message]:
        """The class of its answer."""
        return _response_class(self.request_class.DESCRIPTOR.full_name)

    def parts(self, request: Any) -> int:
        """Number of a request's elements (items, segments, …), which cost time even if short."""
        return self._parts(request)


def _chat(
    request_class: type[Message],
    function: Callable[[ChatService, Any, Call], bytes],
    **reading: Any,
) -> Method:
    def answer(service: Service, request: Any, call: Call) -> bytes:
        try:
            return function(service.chat, request, call)
        except InvalidOption as error:
            raise _as_field(error) from None

    return Method(request_class, answer, **reading)


def _context(
    request_class: type[Message], function: Callable[[ContextService, Any, Call], bytes]
) -> Method:
    def answer(service: Service, request: Any, call: Call) -> bytes:
        try:
            return function(service.context, request, call)
        except InvalidOption as error:
            raise _as_field(error) from None

    return Method(request_class, answer, _parts=lambda request: len(getattr(request, "items", ())))


def _as_field(error: InvalidOption) -> InvalidField:
    """Convert the engine's error: its options have the names of the request's fields."""
    return InvalidField(error.option, error.problem)


#: Every RPC by its name in the proto.
METHODS: Final = {
    "Encode": Method(tokenizer_pb2.EncodeRequest, Service.encode, take_text),
    "Decode": Method(tokenizer_pb2.DecodeRequest, Service.decode, take_ids),
    "Count": Method(tokenizer_pb2.CountRequest, Service.count, take_text, is_count=True),
    "BatchEncode": Method(tokenizer_pb2.BatchEncodeRequest, Service.batch_encode, take_texts),
    "BatchDecode": Method(tokenizer_pb2.BatchDecodeRequest, Service.batch_decode, take_items),
    "BatchCount": Method(
        tokenizer_pb2.BatchCountRequest, Service.batch_count, take_texts, is_count=True
    ),
    "Truncate": _context(context_pb2.TruncateRequest, ContextService.truncate),
    "BatchTruncate": _context(context_pb2.BatchTruncateRequest, ContextService.batch_truncate),
    "Split": _context(context_pb2.SplitRequest, ContextService.split),
    "Inspect": _context(context_pb2.InspectRequest, ContextService.inspect),
    "ListEncodings": Method(tokenizer_pb2.ListEncodingsRequest, Service.list_encodings),
    "GetEncoding": Method(tokenizer_pb2.GetEncodingRequest, Service.get_encoding),
    # Never on the event loop: the first call for a vocabulary reads all of it.
    "GetToken": Method(token_pb2.GetTokenRequest, Service.get_token, _parts=lambda _: sys.maxsize),
}

#: Every RPC of the chat service.
CHAT_METHODS: Final = {
    "CountChat": _chat(chat_pb2.CountChatRequest, ChatService.count, _read=take_chat),
    "BatchCountChat": _chat(
        chat_pb2.BatchCountChatRequest, ChatService.batch_count, _parts=parts_of
    ),
    "EncodeChat": _chat(chat_pb2.EncodeChatRequest, ChatService.encode, _read=take_chat),
    "FitChat": _chat(chat_pb2.FitChatRequest, ChatService.fit, _read=take_chat),
    "ListChatFormats": _chat(chat_pb2.ListChatFormatsRequest, ChatService.list_formats),
    "GetChatFormat": _chat(chat_pb2.GetChatFormatRequest, ChatService.get_format),
}

#: All RPCs by service.
RPCS: Final = {SERVICE_NAME: METHODS, _CHAT_SERVICE.full_name: CHAT_METHODS}


def _unit(value: int) -> Unit | None:
    if value not in _UNITS:
        raise InvalidField("offsets", f"unknown value {value}")
    return _UNITS[value]


@lru_cache(1 << 12)
def _counted(count: int, exceeded: bool) -> bytes:
    """The serialised start of a Count answer. Cached, because most counts are small numbers."""
    response = tokenizer_pb2.CountResponse(count=count, limit_exceeded=exceeded)
    return response.SerializeToString()


@lru_cache(1 << 12)
def _count_result(count: int, exceeded: bool) -> bytes:
    """A serialised result of BatchCount, cached likewise."""
    result = tokenizer_pb2.CountResult(count=count, limit_exceeded=exceeded)
    return wire_fields.element(wire_fields.RESULTS, result.SerializeToString())


def _decode(
    entry: Entry,
    ids: Sequence[int],
    errors: Literal["replace", "strict"] | None,
    skip_special_tokens: bool,
) -> str | bytes:
    encoding = entry.encoding
    kept = encoding.without_special(ids) if skip_special_tokens else ids
    try:
        if errors is None:
            return encoding.decode_bytes(kept)
        return encoding.decode(kept, errors=errors)
    except UnknownTokenId as error:
        # Its index refers to the ids that were kept; report the index in the request.
        raise UnknownTokenId(error.token_id, list(ids).index(error.token_id)) from None


def _record_special(
    entry: Entry, found: Sequence[Content | Exception], rule: SpecialRule, call: Call
) -> None:
    """Record in the call's policy if text contains special tokens that stay text."""
    if not rule.disallowed and contents.contains_special(entry.encoding, found, rule):
        call.policy["as_text"] = None


def _valid(content: Content | Exception) -> Content:
    if isinstance(content, Exception):
        raise content
    return content


def _item_failure(error: Exception, call: Call) -> Failure:
    """The failure of one item. An unexpected error is raised: it fails the whole call."""
    failure = failure_of(error)
    if failure is None:
        raise error
    if failure.reason in POLICY_ACTIONS:
        call.policy.setdefault(POLICY_ACTIONS[failure.reason], failure)
    return failure
