"""The RPCs of the chat service: protobuf to the engine's chats and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bytepair.v1 import chat_pb2
from bytepair_engine import Encoding
from bytepair_engine.chat import (
    ChatFormat,
    ChatFormatMismatch,
    Control,
    count_chat,
    encode_chat,
    fit_chat,
)
from bytepair_engine.chat.counting import count_texts
from bytepair_engine.chat.fitting import fit_texts
from bytepair_engine.chat.format import Accuracy

from bytepair_server.auth.policy import AS_TEXT, REJECT
from bytepair_server.call import Call
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.errors import FormatMismatch, InvalidField
from bytepair_server.rpc import limits
from bytepair_server.rpc.chat_messages import (
    ACCURACY,
    ParsedChat,
    described,
    messages_of,
    options_of,
    parts_of_chat,
    size_of_chat,
    tools_of,
)
from bytepair_server.rpc.options import Options, limit_of
from bytepair_server.rpc.outcome import item_error

SERVICE_NAME: Final = "bytepair.v1.ChatService"


class ChatService:
    """The RPCs of `bytepair.v1.ChatService`: parsed request to serialised answer. Thread-safe."""

    def __init__(self, options: Options) -> None:
        catalog = options.catalog
        self._options: Final = options
        self._described: Final = {
            name: described(chosen, _fitting(chosen, catalog))
            for name, chosen in catalog.chat_formats.items()
        }
        # The serialised end of CountChat answers, constant for an encoding and a format.
        self._ends: Final = {
            (entry.name, chosen.name): chat_pb2.CountChatResponse(
                **_naming(entry, chosen)
            ).SerializeToString()
            for entry in catalog.entries
            for chosen in catalog.chat_formats.values()
        }

    def count(self, parsed: ParsedChat[chat_pb2.CountChatRequest], call: Call) -> bytes:
        request = parsed.request
        entry, chosen, action = self._chosen(request, call, AS_TEXT)
        self._check_size("messages", parsed.parts, parsed.size, call)
        limit, encoding, counted = limit_of(request), entry.encoding, None
        texts = parsed.texts()
        if texts is not None and limit is None:
            counted = count_texts(
                texts, encoding=encoding, chosen=chosen, disallowed_special=action
            )
        if counted is None:
            counted = count_chat(
                parsed.messages(),
                encoding=encoding,
                format=chosen,
                tools=tools_of(request.tools),
                options=options_of(request),
                limit=limit,
                disallowed_special=action,
            )
        call.tokens = counted.count
        answer = chat_pb2.CountChatResponse(
            count=counted.count,
            limit_exceeded=counted.limit_exceeded,
            accuracy=_accuracy(counted.accuracy, request, chosen),
            message_counts=counted.message_counts,
            tools_count=counted.tools_count,
            frame_count=counted.frame_count,
        )
        return answer.SerializeToString() + self._ends[entry.name, chosen.name]

    def batch_count(self, request: chat_pb2.BatchCountChatRequest, call: Call) -> bytes:
        entry, chosen, action = self._chosen(request, call, AS_TEXT)
        limits.check("items", len(request.items), self._options.settings.max_batch_items, "items")
        parts = sum(map(parts_of_chat, request.items))
        self._check_size(
            "items.messages", parts, lambda: sum(map(size_of_chat, request.items)), call
        )
        options, limit = options_of(request), limit_of(request)
        chosen.check_options(options)
        response = chat_pb2.BatchCountChatResponse(**_naming(entry, chosen))
        for item in request.items:
            try:
                counted = count_chat(
                    messages_of(item.messages),
                    encoding=entry.encoding,
                    format=chosen,
                    tools=tools_of(item.tools),
                    options=options,
                    limit=limit,
                    disallowed_special=action,
                )
            except Exception as error:
                response.results.add(error=item_error(error, call))
                continue
            response.results.add(
                count=counted.count,
                limit_exceeded=counted.limit_exceeded,
                accuracy=_accuracy(counted.accuracy, request, chosen),
            )
            call.tokens += counted.count
        return response.SerializeToString()

    def encode(self, parsed: ParsedChat[chat_pb2.EncodeChatRequest], call: Call) -> bytes:
        request = parsed.request
        entry, chosen, action = self._chosen(request, call, REJECT)
        if chosen.encodes:  # else the error is that it can only count
            self._options.policy.permit_format(call.caller, chosen.name)
        call.policy["allowed"] = None
        self._check_size("messages", parsed.parts, parsed.size, call)
        encoded = encode_chat(
            parsed.messages(),
            encoding=entry.encoding,
            format=chosen,
            tools=tools_of(request.tools),
            options=options_of(request),
            disallowed_special=action,
        )
        call.tokens = len(encoded.ids)
        response = chat_pb2.EncodeChatResponse(ids=encoded.ids, **_names(entry, chosen))
        for start, end in encoded.message_spans:
            response.message_spans.add(start=start, end=end)
        if request.with_segments:
            for segment in encoded.segments:
                if isinstance(segment, Control):
                    response.segments.add(special_token=segment.name)
                else:
                    response.segments.add(text=segment)
        return response.SerializeToString()

    def fit(self, parsed: ParsedChat[chat_pb2.FitChatRequest], call: Call) -> bytes:
        request = parsed.request
        entry, chosen, action = self._chosen(request, call, AS_TEXT)
        self._check_size("messages", parsed.parts, parsed.size, call)
        limit = self._options.settings.max_segments
        limits.check("pinned", len(request.pinned), limit, "indices of messages")
        if not request.max_tokens:
            raise InvalidField("max_tokens", "must be set, to at least 1")
        how: dict[str, Any] = {
            "encoding": entry.encoding,
            "reserve_tokens": request.reserve_tokens,
            "keep_system": request.keep_system or not request.HasField("keep_system"),
            "pinned": request.pinned,
            "min_last_turns": request.min_last_turns if request.HasField("min_last_turns") else 1,
            "refill_percent": request.refill_percent if request.HasField("refill_percent") else 100,
            "disallowed_special": action,
        }
        texts, fitted = parsed.texts(), None
        if texts is not None:
            fitted = fit_texts(texts, request.max_tokens, chosen=chosen, **how)
        if fitted is None:
            fitted = fit_chat(
                parsed.messages(),
                request.max_tokens,
                format=chosen,
                tools=tools_of(request.tools),
                options=options_of(request),
                **how,
            )
        call.tokens = fitted.original_count
        return chat_pb2.FitChatResponse(
            kept=fitted.kept,
            trimmed=fitted.trimmed,
            count=fitted.count,
            original_count=fitted.original_count,
            accuracy=_accuracy(fitted.accuracy, request, chosen),
            **_naming(entry, chosen),
        ).SerializeToString()

    def list_formats(self, request: chat_pb2.ListChatFormatsRequest, call: Call) -> bytes:
        del request, call
        answer = chat_pb2.ListChatFormatsResponse(formats=self._described.values())
        return answer.SerializeToString()

    def get_format(self, request: chat_pb2.GetChatFormatRequest, call: Call) -> bytes:
        del call
        name = self._options.catalog.chat_format(request.format).name
        return chat_pb2.GetChatFormatResponse(format=self._described[name]).SerializeToString()

    def _chosen(
        self, request: Any, call: Call, default_action: int
    ) -> tuple[Entry, ChatFormat, Any]:
        """The encoding, the format, and the special tokens that text must not contain."""
        entry = self._options.entry(request.encoding, request.expected_fingerprint, call)
        chosen = self._options.catalog.chat_format(request.format)
        expected = request.expected_format_fingerprint
        if expected and expected != chosen.fingerprint:
            raise FormatMismatch(chosen.name, expected, chosen.fingerprint)
        rule = self._options.policy.rule(
            call.caller, entry, request.disallowed_special, default_action
        )
        return entry, chosen, rule["disallowed_special"]

    def _check_size(self, field: str, parts: int, size: Callable[[], int], call: Call) -> None:
        limits.check(field, parts, self._options.settings.max_segments, limits.PARTS)
        self._options.check_size(field, size(), call)


def _accuracy(accuracy: Accuracy, request: Any, chosen: ChatFormat) -> Any:
    """The accuracy for the model that the request names as its encoding, if it names one."""
    return ACCURACY[accuracy if chosen.is_for(request.encoding) else "estimate"]


def _naming(entry: Entry, chosen: ChatFormat) -> dict[str, Any]:
    """The fields of answers that name audience, rule, encoding and format."""
    return {"audience": chosen.audience, "rule": chosen.source, **_names(entry, chosen)}


def _names(entry: Entry, chosen: ChatFormat) -> dict[str, Any]:
    return {
        "encoding": entry.name,
        "fingerprint": entry.fingerprint,
        "format": chosen.name,
        "format_fingerprint": chosen.fingerprint,
    }


def _fitting(chosen: ChatFormat, catalog: Catalog) -> list[Encoding]:
    """The loaded encodings that have all tokens of a format."""
    found = []
    for entry in catalog.entries:
        try:
            chosen.check_encoding(entry.encoding)
        except ChatFormatMismatch:
            continue
        found.append(entry.encoding)
    return found
