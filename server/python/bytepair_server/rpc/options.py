"""The options that requests share: encoding, special tokens, decoding, limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

from bytepair.v1 import chat_pb2, context_pb2, stream_pb2, text_pb2, tokenizer_pb2
from bytepair_engine import UnknownEncoding

from bytepair_server.auth.policy import Policy, SpecialRule
from bytepair_server.call import UNKNOWN_ENCODING, Call
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.settings import Settings
from bytepair_server.errors import FingerprintMismatch, InvalidField
from bytepair_server.rpc import limits

_DECODE_ERRORS: Final[dict[int, Literal["replace", "strict"]]] = {
    text_pb2.DECODE_ERRORS_UNSPECIFIED: "replace",
    text_pb2.DECODE_ERRORS_REPLACE: "replace",
    text_pb2.DECODE_ERRORS_STRICT: "strict",
}

_HasDecode = (
    tokenizer_pb2.DecodeRequest | tokenizer_pb2.BatchDecodeRequest | stream_pb2.DecodeStreamConfig
)
_HasLimit = (
    tokenizer_pb2.CountRequest
    | tokenizer_pb2.BatchCountRequest
    | stream_pb2.CountStreamConfig
    | chat_pb2.CountChatRequest
    | chat_pb2.BatchCountChatRequest
)
_HasRule = (
    tokenizer_pb2.EncodeRequest
    | tokenizer_pb2.BatchEncodeRequest
    | tokenizer_pb2.CountRequest
    | tokenizer_pb2.BatchCountRequest
    | context_pb2.TruncateRequest
    | context_pb2.BatchTruncateRequest
    | context_pb2.SplitRequest
)

T = TypeVar("T")


class Options:
    """Validates the options of requests. Thread-safe."""

    def __init__(self, settings: Settings, catalog: Catalog, policy: Policy) -> None:
        self.settings: Final = settings
        self.catalog: Final = catalog
        self.policy: Final = policy

    def entry(self, name: str, expected_fingerprint: str, call: Call) -> Entry:
        """The encoding of a call. Raises like `Catalog.get`."""
        try:
            entry = self.catalog.get(name, expected_fingerprint)
        except UnknownEncoding:
            call.encoding = UNKNOWN_ENCODING
            raise
        except FingerprintMismatch as error:
            call.encoding = error.encoding
            raise
        call.encoding = entry.name
        return entry

    def check_size(self, field: str, size: int, call: Call) -> None:
        """Check the UTF-8 size of a call's text in bytes, and record it. Raises InputTooLarge."""
        limits.check(field, size, self.settings.max_input_bytes, "bytes")
        call.input_bytes = size

    def text(self, request: _HasRule, call: Call, default_action: int) -> tuple[Entry, SpecialRule]:
        """The encoding, and how special tokens in text are treated; see `Policy.rule`."""
        entry = self.entry(request.encoding, request.expected_fingerprint, call)
        allowed = request.allowed_special
        if allowed:
            limit = self.settings.max_allowed_special
            limits.check("allowed_special", len(allowed), limit, "entries")
        rule = self.policy.rule(
            call.caller,
            entry,
            request.disallowed_special,
            default_action,
            allowed,
            add_special_tokens=request.add_special_tokens,
        )
        if rule["allowed_special"] or (rule["add_special_tokens"] and entry.encoding.template):
            call.policy["allowed"] = None
        return entry, rule

    def decode(
        self, request: _HasDecode, call: Call
    ) -> tuple[Entry, Literal["replace", "strict"] | None]:
        """The encoding, and the handling of bytes that are not UTF-8; None for raw bytes."""
        entry = self.entry(request.encoding, request.expected_fingerprint, call)
        errors = chosen("errors", request.errors, text_pb2.DecodeErrors.Name, _DECODE_ERRORS)
        if not request.as_bytes:
            return entry, errors
        if errors == "strict":
            raise InvalidField("errors", "STRICT cannot be combined with as_bytes")
        return entry, None


def chosen(field: str, value: int, name_of: Callable[[Any], str], meanings: Mapping[int, T]) -> T:
    """The meaning of a value of an enum. Raises InvalidField for one without a meaning; the error
    lists the names, by `name_of`, of those that have one."""
    if value not in meanings:
        names = ", ".join(name_of(number) for number in meanings if number)
        raise InvalidField(field, f"must be one of {names}")
    return meanings[value]


def limit_of(request: _HasLimit) -> int | None:
    """The limit of a count; None if it has none."""
    return request.limit if request.HasField("limit") else None
