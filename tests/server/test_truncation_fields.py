"""Answers of Truncate are byte for byte those that protobuf writes."""

from __future__ import annotations

import pytest
from bytepair.v1 import context_pb2
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.truncating import Truncation
from bytepair_server.rpc.context_options import LEVEL_NUMBERS
from bytepair_server.rpc.context_service import truncation_fields
from hypothesis import given
from hypothesis import strategies as st

numbers = st.sampled_from([0, 1, 127, 128, 16_384, (1 << 32) + 1])
ranges = st.lists(st.tuples(numbers, numbers), max_size=2)


@pytest.mark.parametrize("message", [context_pb2.TruncateResponse, context_pb2.TruncateResult])
@given(
    st.text(max_size=200),
    st.booleans(),
    numbers,
    ranges,
    st.none() | numbers,
    st.none() | st.sampled_from(LEVELS),
)
def test_fields_are_written_as_protobuf_writes_them(
    message: type[context_pb2.TruncateResponse],
    text: str,
    truncated: bool,
    count: int,
    kept: list[tuple[int, int]],
    original: int | None,
    level: Level | None,
) -> None:
    expected = message(
        text=text,
        truncated=truncated,
        count=count,
        kept=[context_pb2.TextRange(start=start, end=end) for start, end in kept],
        original_count=original,
        level=None if level is None else LEVEL_NUMBERS[level],  # type: ignore[arg-type]
    )
    found = Truncation(text, count, truncated, (), level)
    assert truncation_fields(text.encode(), found, kept, original) == expected.SerializeToString()
