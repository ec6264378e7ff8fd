"""Options of requests to truncate, split and inspect, in the engine's terms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from bytepair.v1 import context_pb2, text_pb2
from bytepair_engine.backends.text_length import text_length
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.splitting import DEFAULT_MIN_FILL_PERCENT, Chunk, SplitOptions
from bytepair_engine.context.truncation_search import Keep

from bytepair_server.auth.policy import SpecialRule
from bytepair_server.catalog import Entry
from bytepair_server.rpc.content import UNITS, Unit
from bytepair_server.rpc.options import chosen

_HasSplit = context_pb2.SplitRequest | context_pb2.SplitStreamConfig

_KEEPS: Final[dict[int, Keep]] = {
    context_pb2.KEEP_UNSPECIFIED: "start",
    context_pb2.KEEP_START: "start",
    context_pb2.KEEP_END: "end",
    context_pb2.KEEP_BOTH: "both",
}
#: The levels of the engine by their number in the proto, and the other way round.
_LEVELS: Final[dict[int, Level]] = dict(enumerate(LEVELS, context_pb2.CUT_LEVEL_CODE_POINT))
LEVEL_NUMBERS: Final[dict[Level, int]] = {level: number for number, level in _LEVELS.items()}
OFFSET_UNITS: Final[dict[int, Unit]] = {text_pb2.OFFSET_UNIT_UNSPECIFIED: "byte", **UNITS}


def level_of(value: int, default: Level) -> Level:
    """Return the level; `default` if unspecified. Raises InvalidField for an unknown value."""
    if value == context_pb2.CUT_LEVEL_UNSPECIFIED:
        return default
    return chosen("level", value, context_pb2.CutLevel.Name, _LEVELS)


@lru_cache(64)
def cut_options(keep: int, level: int, unit: int) -> tuple[Keep, Level, Unit]:
    """Return the options of a truncation. Cached, because each call has one of a few sets. Raises
    InvalidField for an unknown value."""
    return (
        chosen("keep", keep, context_pb2.Keep.Name, _KEEPS),
        level_of(level, "grapheme"),
        chosen("unit", unit, text_pb2.OffsetUnit.Name, OFFSET_UNITS),
    )


def split_options(request: _HasSplit, rule: SpecialRule) -> SplitOptions:
    """Return the options of a split. Raises InvalidOption if the engine rejects them."""
    has_fill = request.HasField("min_fill_percent")
    return SplitOptions(
        request.max_tokens,
        request.overlap_tokens,
        level_of(request.level, "paragraph"),
        request.min_fill_percent if has_fill else DEFAULT_MIN_FILL_PERCENT,
        rule["allowed_special"],
        rule["add_special_tokens"],
    )


def converted(text: str, positions: Iterable[int], unit: Unit) -> dict[int, int]:
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


class ChunkWriter:
    """Writes chunks as messages, in order, with offsets in the requested unit."""

    def __init__(self, entry: Entry, rule: SpecialRule, request: _HasSplit) -> None:
        """Write the chunks of a request. Raises InvalidField for an unknown unit."""
        self._entry: Final = entry
        self._rule: Final = rule
        self._unit: Final = chosen("unit", request.unit, text_pb2.OffsetUnit.Name, OFFSET_UNITS)
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
            end_level=LEVEL_NUMBERS[chunk.level],  # type: ignore[arg-type]
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
