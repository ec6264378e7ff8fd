"""What a stream keeps of its requests, to send them again after its connection breaks."""

from __future__ import annotations

import pytest
from bytepair.v1 import context_pb2, stream_pb2, text_pb2
from bytepair_client._errors import InvalidUtf8, Unavailable, UnknownTokenId
from bytepair_client._send_buffers import (
    MAX_KEPT_REQUESTS,
    MIN_CONTEXT_IDS,
    IdsBuffer,
    TextBuffer,
    shift,
)


def test_ids_that_never_settle_are_kept_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    buffer = IdsBuffer(stream_pb2.DecodeStreamConfig(stop=["a" * 1000]), 10)
    for number in range(2 * MAX_KEPT_REQUESTS + 2):
        assert buffer.can_rewind == (number <= MAX_KEPT_REQUESTS)
        for part in buffer.parts([64] * 10):
            buffer.put(part)
        buffer.take()
        consumed = (number + 1) * 10
        buffer.read(
            stream_pb2.DecodeStreamResponse(tokens_consumed=consumed, pending_bytes=consumed)
        )
    assert [record.name for record in caplog.records] == ["bytepair_client"]


@pytest.mark.parametrize(
    ("prefill", "errors", "start"),
    [
        ([], text_pb2.DECODE_ERRORS_STRICT, [64] * 8),
        ([1], text_pb2.DECODE_ERRORS_REPLACE, []),
        ([1], text_pb2.DECODE_ERRORS_STRICT, [1] + [64] * 8),  # errors count its bytes
    ],
)
def test_settled_ids_are_dropped_between_the_start_and_the_last_ones(
    prefill: list[int], errors: text_pb2.DecodeErrors, start: list[int]
) -> None:
    config = stream_pb2.DecodeStreamConfig(prefill_ids=prefill, errors=errors)
    buffer = IdsBuffer(config, 8)
    for number in range(40):
        buffer.put([64] * 8)
        buffer.take()
        consumed = 8 * (number + 1)
        buffer.read(stream_pb2.DecodeStreamResponse(text="a" * 8, tokens_consumed=consumed))
    assert buffer.can_rewind
    buffer.rewind(None)
    assert list(config.prefill_ids) == start + [64] * MIN_CONTEXT_IDS


def test_a_prefill_is_cut_once_later_ids_have_text() -> None:
    prefill = [*range(1000)]
    config = stream_pb2.DecodeStreamConfig(prefill_ids=prefill)
    buffer = IdsBuffer(config, 8)
    for token_id, text, sent in (
        (1000, "", prefill),  # a special token that is skipped: the next token may be the first
        (1001, "a", [*range(2, 1002)]),  # it may be the only token with text
        (1002, "b", [*range(1003 - MIN_CONTEXT_IDS, 1003)]),
    ):
        buffer.put([token_id])
        while not buffer.is_empty:
            buffer.take()
        consumed = token_id - 999
        buffer.read(stream_pb2.DecodeStreamResponse(text=text, tokens_consumed=consumed))
        buffer.rewind(None)
        assert list(config.prefill_ids) == sent


def test_a_corrected_position_changes_no_other_number_of_the_message() -> None:
    message = "no token of x has id 3000, which is at index 3"
    unknown = UnknownTokenId(message, metadata={"index": "3", "id": "3000"})
    shift(unknown, "index", 10)
    assert (str(unknown), unknown.index) == ("no token of x has id 3000, which is at index 13", 13)
    not_utf8 = InvalidUtf8("data is not UTF-8 at byte 8", metadata={"byte_offset": "8"})
    shift(not_utf8, "byte_offset", 2)
    assert (str(not_utf8), not_utf8.byte_offset) == ("data is not UTF-8 at byte 10", 10)


def test_a_chunk_that_a_later_connection_repeats_is_dropped() -> None:
    buffer = TextBuffer(context_pb2.SplitStreamConfig(), context_pb2.SplitStreamRequest, 9)
    read = []
    for starts in ([0, 4], [], [0], [0, 4, 7], [9]):
        chunks = [context_pb2.Chunk(start=start) for start in starts]
        response = context_pb2.SplitStreamResponse(chunks=chunks)
        assert buffer.read(response)
        read.append([chunk.start for chunk in response.chunks])
        buffer.rewind(None)
    assert read == [[0, 4], [], [], [7], [9]]


def read_again(text: bytes) -> TextBuffer:
    """The buffer of a stream whose text is read again from its start."""
    buffer = TextBuffer(context_pb2.SplitStreamConfig(), context_pb2.SplitStreamRequest, 9)
    for part in buffer.parts(text):
        buffer.put(part)
        buffer.take()
    assert not buffer.can_rewind
    buffer.put(bytearray(b"pending"))
    buffer.rewind(context_pb2.SplitStreamResponse(encoding="e", fingerprint="f"))
    return buffer


def test_a_text_that_is_read_again_needs_the_encoding_of_the_first_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    buffer = read_again(b"." * 90)
    assert buffer.can_rewind
    assert not caplog.records  # nothing is lost
    request = context_pb2.SplitStreamRequest.FromString(buffer.take())
    config = request.config
    assert (config.encoding, config.expected_fingerprint, request.data) == ("e", "f", b"")
    with pytest.raises(InvalidUtf8) as caught:
        list(buffer.parts("\ud800"))
    assert caught.value.byte_offset == 0


@pytest.mark.parametrize(("size", "second"), [(7, 0), (97, 0), (97, 10)])
def test_another_text_is_noticed_where_the_first_one_ended(size: int, second: int) -> None:
    def put(text: bytes) -> None:
        buffer = read_again(b"." * 90)
        for _ in range(second):  # requests of a shorter reading
            buffer.put(bytearray(b"." * 9))
            buffer.take()
        buffer.rewind(None)
        for start in range(0, len(text), size):
            buffer.put(bytearray(text[start : start + size]))

    put(b"." * 90 + b"pending and more")
    with pytest.raises(Unavailable, match="another text"):
        put(b"." * 90 + b"another and more")


def test_requests_after_a_break_are_no_larger() -> None:
    buffer = IdsBuffer(stream_pb2.DecodeStreamConfig(), 10)
    for part in buffer.parts([64] * 30):
        buffer.put(part)
        buffer.take()
    buffer.rewind(None)
    requests = [stream_pb2.DecodeStreamRequest.FromString(buffer.take()) for _ in range(3)]
    assert [len(request.ids) for request in requests] == [10, 10, 10]


def test_ids_of_a_template_come_once_over_all_connections() -> None:
    config = stream_pb2.EncodeStreamConfig(encoding="e", add_special_tokens=True)
    buffer = TextBuffer(config, stream_pb2.EncodeStreamRequest, 10)
    buffer.put(bytearray(b"one two"))
    read = []
    for ids, consumed in (([1], 0), ([1], 0), ([1, 5], 3), ([6], 7)):
        if consumed < 7:
            buffer.rewind(None)
            buffer.take()
        response = stream_pb2.EncodeStreamResponse(ids=ids, bytes_consumed=consumed)
        buffer.read(response)
        read.append(list(response.ids))
    assert read == [[1], [], [5], [6]]


def test_an_offset_in_a_text_after_a_break_counts_from_its_start() -> None:
    config = stream_pb2.EncodeStreamConfig(encoding="e")
    buffer = TextBuffer(config, stream_pb2.EncodeStreamRequest, 10)
    buffer.put(bytearray(b"one two "))
    buffer.take()
    buffer.read(stream_pb2.EncodeStreamResponse(bytes_consumed=3, ids=[1]))
    buffer.rewind(None)
    error = InvalidUtf8("data is not UTF-8 at byte 5", metadata={"byte_offset": "5"})
    buffer.correct(error)
    assert error.byte_offset == 8
    assert config.preceding_text == "e"
