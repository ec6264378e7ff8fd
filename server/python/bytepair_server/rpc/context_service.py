"""The RPCs that truncate, split and inspect text: protobuf to the engine, and back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

from bytepair.v1 import context_pb2, text_pb2
from bytepair_engine import InvalidOption, PieceTooLong, UnknownTokenId, cancel
from bytepair_engine.backends.text_length import text_length
from bytepair_engine.context import inspecting, splitting, truncating
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.splitting import DEFAULT_MIN_FILL_PERCENT, Chunk, SplitOptions
from bytepair_engine.context.truncating import DEFAULT_START_PERCENT
from bytepair_engine.context.truncation_search import Keep
from bytepair_engine.errors import check_percent

from bytepair_server.auth.policy import AS_TEXT, SpecialRule
from bytepair_server.call import Call
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings, alias_hint
from bytepair_server.errors import InputTooLarge, InvalidField, NoSplitPoint, PartTooShort
from bytepair_server.rpc import limits
from bytepair_server.rpc.content import UNITS, Unit, record_special
from bytepair_server.rpc.options import Options, chosen
from bytepair_server.rpc.outcome import item_error
from bytepair_server.rpc.wire import RESULTS, element, naming

#: Maximum findings in one answer.
MAX_FINDINGS: Final = 1000
#: Each item of a batch counts the marker again, possibly several times.
MAX_MARKER_BYTES: Final = 1024

_CODES: Final = {code.value: code for code in inspecting.FindingCode}
_KEEPS: Final[dict[int, Keep]] = {
    context_pb2.KEEP_UNSPECIFIED: "start",
    context_pb2.KEEP_START: "start",
    context_pb2.KEEP_END: "end",
    context_pb2.KEEP_BOTH: "both",
}
#: The levels of the engine by their number in the proto, and the other way round.
_LEVELS: Final[dict[int, Level]] = dict(enumerate(LEVELS, context_pb2.CUT_LEVEL_CODE_POINT))
_LEVEL_NUMBERS: Final[dict[Level, int]] = {level: number for number, level in _LEVELS.items()}
_OFFSET_UNITS: Final[dict[int, Unit]] = {text_pb2.OFFSET_UNIT_UNSPECIFIED: "byte", **UNITS}

_HasSplit = context_pb2.SplitRequest | context_pb2.SplitStreamConfig
_HasTruncate = context_pb2.TruncateRequest | context_pb2.BatchTruncateRequest
#: What to keep, the level, the unit of ranges, and the start's share in percent.
_Cut = tuple[Keep, Level, Unit, int]


def flagged_tokens(settings: Settings, catalog: Catalog) -> dict[str, frozenset[int]]:
    """The ids of `flagged_tokens` for each encoding.

    Raises:
        ConfigurationError: An encoding is not loaded, or does not have an id.
    """
    served = {entry.name: entry.encoding for entry in catalog.entries}
    for name, ids in settings.flagged_tokens.items():
        if name not in served and name not in catalog.failed:
            raise ConfigurationError(
                f"flagged_tokens.{name}: no encoding of this canonical name is loaded"
                f"{alias_hint(name)}"
            )
        for token_id in ids if name in served else ():
            try:
                served[name].decode_single_token_bytes(token_id)
            except UnknownTokenId:
                raise ConfigurationError(
                    f"flagged_tokens.{name}: no token has id {token_id}"
                ) from None
    return {name: frozenset(ids) for name, ids in settings.flagged_tokens.items()}


class ContextService:
    """Truncate, BatchTruncate, Split and Inspect. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self._settings: Final = options.settings
        self._options: Final = options
        self._flagged: Final = flagged_tokens(options.settings, options.catalog)

    def truncate(self, request: context_pb2.TruncateRequest, call: Call) -> bytes:
        entry, rule = self._options.text(request, call, AS_TEXT)
        text = request.text
        utf8 = text.encode()
        self._options.check_size("text", len(utf8), call)
        cut = _cut_of(request)
        fields = self._truncate(
            request, cut, text, utf8, entry, rule, call, is_part=request.is_part
        )
        return fields + naming(context_pb2.TruncateResponse, entry)

    def batch_truncate(self, request: context_pb2.BatchTruncateRequest, call: Call) -> bytes:
        entry, rule = self._options.text(request, call, AS_TEXT)
        limits.check("items", len(request.items), self._settings.max_batch_items, "items")
        texts = [item.text for item in request.items]
        utf8s = [text.encode() for text in texts]
        self._options.check_size("items.text", sum(map(len, utf8s)), call)
        cut = _cut_of(request)
        parts = []
        for item, text, utf8 in zip(request.items, texts, utf8s, strict=True):
            cancel.check()  # an item may cost a millisecond
            try:
                if item.segments:
                    raise InvalidField("segments", "only text can be truncated")
                fields = self._truncate(request, cut, text, utf8, entry, rule, call)
            except InvalidOption:  # of the marker: the whole call fails
                raise
            except Exception as error:
                result = context_pb2.TruncateResult(error=item_error(error, call))
                fields = result.SerializeToString()
            parts.append(element(RESULTS, fields))
        return b"".join(parts) + naming(context_pb2.BatchTruncateResponse, entry)

    def split(self, request: context_pb2.SplitRequest, call: Call) -> bytes:
        entry, rule = self._options.text(request, call, AS_TEXT)
        writer = ChunkWriter(entry, rule, request)
        options = split_options(request, rule)
        text = request.text
        utf8 = text.encode()
        self._options.check_size("text", len(utf8), call)
        record_special(entry.encoding, (utf8,), rule, call)
        response = context_pb2.SplitResponse(encoding=entry.name, fingerprint=entry.fingerprint)
        most, tokens = self._settings.max_chunks, 0
        try:
            for chunk in splitting.split(
                entry.encoding, text, options, disallowed_special=rule["disallowed_special"]
            ):
                if len(response.chunks) == most:
                    raise InputTooLarge("chunks", None, most, "chunks")
                response.chunks.append(writer.write(chunk))
                tokens += chunk.count
        except PieceTooLong as error:
            raise NoSplitPoint(error.limit) from None
        call.tokens = tokens  # a call that fails returns none
        return response.SerializeToString()

    def inspect(self, request: context_pb2.InspectRequest, call: Call) -> bytes:
        entry = self._options.entry(request.encoding, request.expected_fingerprint, call)
        unit = chosen("unit", request.unit, text_pb2.OffsetUnit.Name, _OFFSET_UNITS)
        most = request.max_findings if request.HasField("max_findings") else MAX_FINDINGS
        limits.check("max_findings", most, MAX_FINDINGS, "findings")
        limits.check("codes", len(request.codes), len(_CODES), "codes")
        text = request.text
        self._options.check_size("text", text_length(text, "byte"), call)
        found = inspecting.inspect(
            entry.encoding,
            text,
            codes=[
                chosen("codes", value, context_pb2.FindingCode.Name, _CODES)
                for value in request.codes
            ],
            max_findings=most,
            flagged=self._flagged.get(entry.name, frozenset()),
            long_run_bytes=self._settings.max_pending_bytes,
        )
        call.tokens = found.count
        ends = [end for finding in found.findings for end in (finding.start, finding.end)]
        at = _converted(text, [*ends, found.stable_end], unit)
        return context_pb2.InspectResponse(
            findings=[
                context_pb2.Finding(
                    code=finding.code.value,  # type: ignore[arg-type]
                    start=at[finding.start],
                    end=at[finding.end],
                    token_id=finding.token_id,
                    token=finding.token,
                    code_point=finding.code_point,
                )
                for finding in found.findings
            ],
            totals=[
                context_pb2.FindingTotal(code=code.value, total=total)  # type: ignore[arg-type]
                for code, total in sorted(found.totals.items())
            ],
            count=found.count,
            stable_tokens=found.stable_tokens,
            stable_end=at[found.stable_end],
            encoding=entry.name,
            fingerprint=entry.fingerprint,
        ).SerializeToString()

    def _truncate(
        self,
        request: _HasTruncate,
        cut: _Cut,
        text: str,
        utf8: bytes,
        entry: Entry,
        rule: SpecialRule,
        call: Call,
        *,
        is_part: bool = False,
    ) -> bytes:
        """Return the serialised fields of a TruncateResponse without encoding and fingerprint, or
        of a TruncateResult."""
        max_tokens, marker = request.max_tokens, request.marker
        keep, level, unit, start_percent = cut
        record_special(entry.encoding, (utf8,), rule, call)
        try:
            if is_part:
                part = truncating.truncated_part(
                    entry.encoding,
                    text,
                    max_tokens,
                    keep=_keep_of_part(request, keep, rule),
                    level=level,
                    marker=marker,
                    add_special_tokens=rule["add_special_tokens"],
                )
                if part is None:
                    raise PartTooShort(len(utf8))
                found = part
            else:
                found = truncating.truncated(
                    entry.encoding,
                    text,
                    max_tokens,
                    keep=keep,
                    level=level,
                    marker=marker,
                    start_percent=start_percent,
                    **rule,
                )
        except PieceTooLong as error:
            raise NoSplitPoint(error.limit) from None
        call.tokens += found.count
        if unit == "byte" and len(found.kept) == 1 and not marker:
            size = text_length(found.text, "byte")
            start = 0 if found.kept[0][0] == 0 else len(utf8) - size
            ranges = [(start, start + size)]
        else:
            at = _converted(text, chain.from_iterable(found.kept), unit)
            ranges = [(at[start], at[end]) for start, end in found.kept]
        result = context_pb2.TruncateResult(
            text="" if request.ranges_only else found.text,
            truncated=found.truncated,
            count=found.count,
            level=None if found.level is None else _LEVEL_NUMBERS[found.level],  # type: ignore[arg-type]
        )
        for start, end in ranges:
            result.kept.add(start=start, end=end)
        if request.count_original:
            original = entry.encoding.count(text, **rule) if found.truncated else found.count
            result.original_count = original
        return result.SerializeToString()


def split_options(request: _HasSplit, rule: SpecialRule) -> SplitOptions:
    """Return the options of a split. Raises InvalidOption if the engine rejects them."""
    has_fill = request.HasField("min_fill_percent")
    return SplitOptions(
        request.max_tokens,
        request.overlap_tokens,
        _level_of(request.level, "paragraph"),
        request.min_fill_percent if has_fill else DEFAULT_MIN_FILL_PERCENT,
        rule["allowed_special"],
        rule["add_special_tokens"],
    )


class ChunkWriter:
    """Writes chunks as messages, in order, with offsets in the requested unit."""

    def __init__(self, entry: Entry, rule: SpecialRule, request: _HasSplit) -> None:
        """Write the chunks of a request. Raises InvalidField for an unknown unit."""
        self._entry: Final = entry
        self._rule: Final = rule
        self._unit: Final = chosen("unit", request.unit, text_pb2.OffsetUnit.Name, _OFFSET_UNITS)
        self._with_text: Final = request.with_text
        self._with_ids: Final = request.with_ids
        # The last chunk: its start in code points and in the unit, and its text.
        self._before = 0, 0, ""

    def write(self, chunk: Chunk) -> context_pb2.Chunk:
        """Return the message of the next chunk."""
        start, offset, text = self._before
        begin = offset + text_length(text[: chunk.start - start], self._unit)
        self._before = chunk.start, begin, chunk.text
        message = context_pb2.Chunk(
            start=begin,
            end=begin + text_length(chunk.text, self._unit),
            count=chunk.count,
            end_level=_LEVEL_NUMBERS[chunk.level],  # type: ignore[arg-type]
            overlap=chunk.overlap,
        )
        if self._with_text:
            message.text = chunk.text
        if self._with_ids:
            message.ids.extend(
                self._entry.encoding.encode_array(
                    chunk.text,
                    allowed_special=self._rule["allowed_special"],
                    disallowed_special=frozenset(),
                    add_special_tokens=self._rule["add_special_tokens"],
                )
            )
        return message


@lru_cache(64)
def _cut_options(keep: int, level: int, unit: int) -> tuple[Keep, Level, Unit]:
    """Return the options of a truncation. Cached, because each call has one of a few sets. Raises
    InvalidField for an unknown value."""
    return (
        chosen("keep", keep, context_pb2.Keep.Name, _KEEPS),
        _level_of(level, "grapheme"),
        chosen("unit", unit, text_pb2.OffsetUnit.Name, _OFFSET_UNITS),
    )


def _level_of(value: int, default: Level) -> Level:
    """Return the level; `default` if unspecified. Raises InvalidField for an unknown value."""
    if value == context_pb2.CUT_LEVEL_UNSPECIFIED:
        return default
    return chosen("level", value, context_pb2.CutLevel.Name, _LEVELS)


def _cut_of(request: _HasTruncate) -> _Cut:
    """Return how the texts of a request are cut. Raises for an option that it cannot have, except
    a special token in the marker."""
    limits.check("marker", len(request.marker.encode()), MAX_MARKER_BYTES, "bytes")
    if not request.max_tokens and not request.HasField("max_tokens"):
        raise InvalidField("max_tokens", "must be set; 0 is allowed")
    options = _cut_options(request.keep, request.level, request.unit)
    if not request.HasField("start_percent"):
        return *options, DEFAULT_START_PERCENT
    if options[0] != "both":
        raise InvalidField("start_percent", "needs keep KEEP_BOTH")
    check_percent("start_percent", request.start_percent)
    return *options, request.start_percent


def _keep_of_part(request: _HasTruncate, keep: Keep, rule: SpecialRule) -> Literal["start", "end"]:
    """Raises InvalidField for an option that a part of a text cannot have."""
    is_special = rule["allowed_special"] or rule["disallowed_special"]
    if keep == "both" or request.count_original or is_special:
        raise InvalidField(
            "is_part",
            "cannot be combined with KEEP_BOTH, count_original, allowed_special or special "
            "tokens that are rejected",
        )
    return keep


def _converted(text: str, positions: Iterable[int], unit: Unit) -> dict[int, int]:
    """Convert positions in code points to `unit`, in one pass over the text."""
    ordered = sorted(set(positions))
    if unit == "code_point" or text.isascii():
        return dict(zip(ordered, ordered, strict=True))
    found, last, total = {}, 0, 0
    for position in ordered:
        total += text_length(text[last:position], unit)
        found[position] = total
        last = position
    return found
