"""The RPCs of texts and ids: protobuf to Python and back. Independent of gRPC and threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from bytepair.v1 import text_pb2, token_pb2, tokenizer_pb2
from bytepair_engine import UnknownTokenId

from bytepair_server.auth.policy import AS_TEXT, REJECT, Policy
from bytepair_server.call import Call
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.settings import Settings
from bytepair_server.errors import InvalidField, InvalidText, NoTokenWithId
from bytepair_server.rpc import content as contents
from bytepair_server.rpc import describing, limits, wire
from bytepair_server.rpc.chat_service import ChatService
from bytepair_server.rpc.content import Content, Part, Unit
from bytepair_server.rpc.context_service import ContextService
from bytepair_server.rpc.options import Options, chosen, limit_of
from bytepair_server.rpc.outcome import item_error
from bytepair_server.rpc.wire import ParsedIds, ParsedItems, ParsedText, ParsedTexts

_UNITS: Final[dict[int, Unit | None]] = {
    text_pb2.OFFSET_UNIT_UNSPECIFIED: None,
    text_pb2.OFFSET_UNIT_NONE: None,
    **contents.UNITS,
}

SERVICE_NAME: Final = "bytepair.v1.TokenizerService"

_HasText = tokenizer_pb2.EncodeRequest | tokenizer_pb2.CountRequest | text_pb2.TextItem


class Service:
    """The RPCs of `bytepair.v1.TokenizerService`: parsed request to serialised answer.

    Thread-safe.
    """

    def __init__(self, settings: Settings, catalog: Catalog, policy: Policy) -> None:
        self.options: Final = Options(settings, catalog, policy)
        self.chat: Final = ChatService(self.options)
        self.context: Final = ContextService(self.options)
        self._settings: Final = settings
        self._described: Final = {
            entry.name: describing.encoding(entry) for entry in catalog.entries
        }

    # Text to ids

    def encode(self, parsed: ParsedText[tokenizer_pb2.EncodeRequest], call: Call) -> bytes:
        request, given = parsed
        entry, rule = self.options.text(request, call, REJECT)
        unit = chosen("offsets", request.offsets, text_pb2.OffsetUnit.Name, _UNITS)
        content = self._content(request, given, entry, call)
        self.options.check_size("text", contents.utf8_size(content), call)
        contents.record_special(entry.encoding, [content], rule, call)
        fields, call.tokens = contents.encode(entry.encoding, content, rule, unit)
        return fields + wire.naming(tokenizer_pb2.EncodeResponse, entry)

    def batch_encode(
        self, parsed: ParsedTexts[tokenizer_pb2.BatchEncodeRequest], call: Call
    ) -> bytes:
        request, given = parsed
        entry, rule = self.options.text(request, call, REJECT)
        unit = chosen("offsets", request.offsets, text_pb2.OffsetUnit.Name, _UNITS)
        parts = []
        found = self._contents(request, given, entry, call)
        contents.record_special(entry.encoding, found, rule, call)
        for index, content in enumerate(found):
            try:
                fields, tokens = contents.encode(entry.encoding, _valid(content), rule, unit)
            except InvalidText as error:
                raise error.in_item(index) from None
            except Exception as error:
                failure = item_error(error, call)
                fields = tokenizer_pb2.EncodeResult(error=failure).SerializeToString()
            else:
                call.tokens += tokens
            parts.append(wire.element(wire.RESULTS, fields))
        parts.append(wire.naming(tokenizer_pb2.BatchEncodeResponse, entry))
        return b"".join(parts)

    def count(self, parsed: ParsedText[tokenizer_pb2.CountRequest], call: Call) -> bytes:
        request, given = parsed
        entry, rule = self.options.text(request, call, AS_TEXT)
        content = self._content(request, given, entry, call)
        self.options.check_size("text", contents.utf8_size(content), call)
        contents.record_special(entry.encoding, [content], rule, call)
        count, exceeded = contents.count(entry.encoding, content, rule, limit_of(request))
        call.tokens = count
        return _counted(count, exceeded) + wire.naming(tokenizer_pb2.CountResponse, entry)

    def batch_count(
        self, parsed: ParsedTexts[tokenizer_pb2.BatchCountRequest], call: Call
    ) -> bytes:
        request, given = parsed
        entry, rule = self.options.text(request, call, AS_TEXT)
        limit = limit_of(request)
        found = self._contents(request, given, entry, call)
        if given is not None and not rule["disallowed_special"]:
            # No item can fail on its own. The separator never occurs in UTF-8.
            contents.record_special(entry.encoding, [b"\xff".join(given)], rule, call)
            counts = contents.count_texts(entry.encoding, given, rule, limit)
            call.tokens = sum(counts)
            if limit is None:
                parts = list(map(_count_result, counts))
            else:
                parts = [_count_result(each, each > limit) for each in counts]
        else:
            parts = []
            contents.record_special(entry.encoding, found, rule, call)
            for index, content in enumerate(found):
                try:
                    count, exceeded = contents.count(entry.encoding, _valid(content), rule, limit)
                except InvalidText as error:
                    raise error.in_item(index) from None
                except Exception as error:
                    failure = item_error(error, call)
                    fields = tokenizer_pb2.CountResult(error=failure).SerializeToString()
                    parts.append(wire.element(wire.RESULTS, fields))
                else:
                    parts.append(_count_result(count, exceeded))
                    call.tokens += count
        parts.append(wire.naming(tokenizer_pb2.BatchCountResponse, entry))
        return b"".join(parts)

    # Ids to text

    def decode(self, parsed: ParsedIds, call: Call) -> bytes:
        request, ids = parsed
        entry, errors = self.options.decode(request, call)
        limits.check("ids", len(ids), self._settings.max_ids, "ids")
        decoded = _decode(entry, ids, errors, request.skip_special_tokens)
        call.tokens = len(ids)
        return tokenizer_pb2.DecodeResponse(
            **decoded, encoding=entry.name, fingerprint=entry.fingerprint
        ).SerializeToString()

    def batch_decode(self, parsed: ParsedItems, call: Call) -> bytes:
        request, items = parsed
        entry, errors = self.options.decode(request, call)
        settings = self._settings
        limits.check("items", len(items), settings.max_batch_items, "items")
        limits.check("items.ids", sum(map(len, items)), settings.max_ids, "ids")
        response = tokenizer_pb2.BatchDecodeResponse(
            encoding=entry.name, fingerprint=entry.fingerprint
        )
        for ids in items:
            try:
                decoded = _decode(entry, ids, errors, request.skip_special_tokens)
            except Exception as error:
                response.results.add(error=item_error(error, call))
            else:
                response.results.add(**decoded)
                call.tokens += len(ids)
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
        entry = self.options.entry(request.encoding, request.expected_fingerprint, call)
        answer = describing.token(entry, request.id)
        call.tokens = 1
        return answer.SerializeToString()

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
                self.options.policy.permit(
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
        self, request: Any, texts: list[bytes] | None, entry: Entry, call: Call
    ) -> Sequence[Content | Exception]:
        """The content of each item, or its error."""
        settings = self._settings
        if texts is not None:
            limits.check("items", len(texts), settings.max_batch_items, "items")
            self.options.check_size("items.text", sum(map(len, texts)), call)
            return texts
        items = request.items
        limits.check("items", len(items), settings.max_batch_items, "items")
        total = sum(len(item.segments) for item in items)
        limits.check("items.segments", total, settings.max_segments, "segments")
        found: list[Content | Exception] = []
        for item in items:
            try:
                found.append(self._content(item, item.text, entry, call))
            except Exception as error:
                item_error(error, call)
                found.append(error)
        good = (content for content in found if not isinstance(content, Exception))
        self.options.check_size("items.text", sum(map(contents.utf8_size, good)), call)
        return found


@lru_cache(1 << 12)
def _counted(count: int, exceeded: bool) -> bytes:
    """The serialised start of a Count answer. Cached, because most counts are small numbers."""
    response = tokenizer_pb2.CountResponse(count=count, limit_exceeded=exceeded)
    return response.SerializeToString()


@lru_cache(1 << 12)
def _count_result(count: int, exceeded: bool = False) -> bytes:
    """A serialised result of BatchCount, cached likewise."""
    result = tokenizer_pb2.CountResult(count=count, limit_exceeded=exceeded)
    return wire.element(wire.RESULTS, result.SerializeToString())


def _decode(
    entry: Entry,
    ids: Sequence[int],
    errors: Literal["replace", "strict"] | None,
    skip_special_tokens: bool,
) -> dict[str, Any]:
    """The field of an answer: `text`, or `data` if `errors` is None."""
    encoding = entry.encoding
    kept = encoding.without_special(ids) if skip_special_tokens else ids
    try:
        if errors is None:
            return {"data": encoding.decode_bytes(kept)}
        return {"text": encoding.decode(kept, errors=errors)}
    except UnknownTokenId as error:
        # Its index refers to the ids that were kept; report the index in the request.
        index = list(ids).index(error.token_id)
        raise NoTokenWithId(entry.name, error.token_id, index) from None


def _valid(content: Content | Exception) -> Content:
    if isinstance(content, Exception):
        raise content
    return content
