"""Streams whose connection breaks anywhere are resumed, for every kind of encoding."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from bytepair.v1 import context_pb2, stream_pb2, text_pb2
from bytepair_client import _send_buffers
from bytepair_client._errors import InvalidUtf8, Unavailable, UnknownTokenId
from bytepair_client._send_buffers import (
    MAX_KEPT_REQUESTS,
    MIN_CONTEXT_IDS,
    IdsBuffer,
    TextBuffer,
    shift,
)
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    InvalidUnicode,
    StreamDecoder,
    StreamEncoder,
    can_stream,
    get_encoding,
    load_encoding,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sentencepiece_models, tokenizer_json

BREAK, LATE_BREAK = 0.1, 0.1  # before a request is sent, and before its response is read
PIECES = ["a", " b", "naïve ", "日本語 ", "🙂", "\r\n", "  ", "<|endoftext|>", "don't ", "12345"]


@cache
def encoding(name: str) -> Encoding:
    """A built-in encoding, or one of another format."""
    kind, _, model = name.partition(": ")
    if not model:
        return get_encoding(name)
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.json")
        if kind == "sentencepiece":
            file = file.with_suffix(".model")
            file.write_bytes(sentencepiece_models.trained(model))
        else:
            file.write_bytes(tokenizer_json.made(model))
        return load_encoding(EncodingSpec(name="made", file=file))


NAMES = [
    "cl100k_base",
    "o200k_base",
    *(f"sentencepiece: {name}" for name in sentencepiece_models.MODELS),
    *(f"tokenizer.json: {name}" for name in tokenizer_json.KINDS),
]


class Connection:
    """A server of DecodeStream, made from the engine."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._decoder: Any = None
        self._is_first = True

    def answer_to(self, request: bytes) -> stream_pb2.DecodeStreamResponse:
        message = stream_pb2.DecodeStreamRequest.FromString(request)
        if message.HasField("config"):
            self._decoder = decoder(self._encoding, message.config)
        return self._answer(self._decoder.feed(list(message.ids)), finished=False)

    @property
    def fault(self) -> Any:
        return None if self._decoder is None else self._decoder.fault

    def end(self) -> stream_pb2.DecodeStreamResponse:
        return self._answer(self._decoder.finish(), finished=True)

    def drain(self) -> stream_pb2.DecodeStreamResponse | None:
        """The last response of a stopping server, before the status."""
        delta = None if self._decoder is None else self._decoder.abandon()
        if not delta:
            return None
        answer = self._answer(delta, finished=False)
        answer.stop_matched, answer.finished = "", False
        return answer

    def _answer(self, delta: Any, *, finished: bool) -> stream_pb2.DecodeStreamResponse:
        stop = self._decoder.stop_matched
        answer = stream_pb2.DecodeStreamResponse(
            tokens_consumed=self._decoder.tokens_consumed,
            pending_bytes=self._decoder.pending_bytes,
            stop_matched=stop or "",
            finished=finished or stop is not None,
            encoding="e" if self._is_first else "",
        )
        self._is_first = False
        if isinstance(delta, str):
            answer.text = delta
        else:
            answer.data = delta
        return answer


def decoder(encoding: Encoding, config: stream_pb2.DecodeStreamConfig) -> StreamDecoder[Any]:
    options: Any = {"as_bytes": True} if config.as_bytes else {}
    if config.errors == text_pb2.DECODE_ERRORS_STRICT:
        options["errors"] = "strict"
    return StreamDecoder(
        encoding,
        prefill_ids=list(config.prefill_ids),
        skip_special_tokens=config.skip_special_tokens,
        stop=list(config.stop),
        include_stop=config.include_stop,
        **options,
    )


def decoded(
    rng: random.Random, encoding: Encoding, config: stream_pb2.DecodeStreamConfig, ids: list[int]
) -> Any:
    """The output of a stream whose connection breaks at random."""
    copy = stream_pb2.DecodeStreamConfig()
    copy.CopyFrom(config)
    buffer = IdsBuffer(copy, rng.choice([3, 20, 50]))
    connection, first, source = Connection(encoding), None, iter(ids)
    output: list[Any] = []
    has_ended = False
    while True:
        while not has_ended and not buffer.is_full and rng.random() < 0.6:
            item: Any = [] if rng.random() < 0.1 else next(source, None)
            has_ended = item is None
            for part in () if item is None else buffer.parts(item):
                buffer.put(part)
        if buffer.can_rewind and rng.random() < BREAK:
            extra = connection.drain() if rng.random() < 0.5 else None
            assert extra is None or first is None or not buffer.read(extra)
            buffer.rewind(first)
            connection = Connection(encoding)
        if buffer.is_empty and not has_ended:
            continue
        answer = connection.end() if buffer.is_empty else connection.answer_to(buffer.take())
        if buffer.can_rewind and rng.random() < LATE_BREAK:
            buffer.rewind(first)
            connection = Connection(encoding)
            continue
        assert buffer.read(answer)
        output.append(answer.data if config.as_bytes else answer.text)
        if first is None:
            first = stream_pb2.DecodeStreamResponse(encoding="e")
        if answer.finished:
            return (b"" if config.as_bytes else "").join(output)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_an_interrupted_stream_of_ids_gives_what_one_connection_gives(name: str, seed: int) -> None:
    rng = random.Random(seed)
    made = encoding(name)
    ids = made.encode("".join(rng.choices(PIECES, k=rng.randrange(40))), disallowed_special=())
    ids = [rng.choice(ids) if rng.random() < 0.3 else token_id for token_id in ids]
    cut = rng.choice([0, 0, len(ids) // 3])
    text = made.decode(ids[cut:])
    stop = []
    if text and rng.random() < 0.6:
        start = rng.randrange(len(text))
        stop = [text[start : start + rng.randrange(1, 6)] + rng.choice(["", "\0"])]
    config = stream_pb2.DecodeStreamConfig(
        prefill_ids=ids[:cut],
        stop=stop,
        include_stop=rng.random() < 0.5,
        skip_special_tokens=rng.random() < 0.3,
        as_bytes=rng.random() < 0.3,
    )
    whole = decoder(made, config)
    expected = whole.feed(ids[cut:])
    if whole.stop_matched is None:
        expected += whole.finish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_send_buffers, "MIN_CONTEXT_IDS", rng.choice([20, MIN_CONTEXT_IDS]))
        assert decoded(rng, made, config, ids[cut:]) == expected


def encoder(encoding: Encoding, config: stream_pb2.EncodeStreamConfig) -> StreamEncoder:
    return StreamEncoder(
        encoding,
        disallowed_special=(),
        add_special_tokens=config.add_special_tokens,
        preceding_text=config.preceding_text,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), add_special_tokens=st.booleans())
def test_an_interrupted_stream_of_text_gives_what_one_connection_gives(
    name: str, seed: int, add_special_tokens: bool
) -> None:
    rng = random.Random(seed)
    made = encoding(name)
    text = "".join(rng.choices(PIECES, k=rng.randrange(60))).encode()
    config = stream_pb2.EncodeStreamConfig(encoding="e", add_special_tokens=add_special_tokens)
    if not can_stream(made):
        with pytest.raises(InvalidOption, match="cannot be streamed"):
            encoder(made, config)
        return
    buffer = TextBuffer(config, stream_pb2.EncodeStreamRequest, rng.choice([3, 20]))
    stream, first = encoder(made, config), None
    ids: list[int] = []
    source = iter([text[start : start + 5] for start in range(0, len(text), 5)])
    has_ended = finished = False
    while not finished:
        piece = None if has_ended or buffer.is_full else next(source, None)
        has_ended = has_ended or (piece is None and not buffer.is_full)
        for item in [piece, b""] if piece is not None and rng.random() < 0.5 else [piece]:
            for part in () if item is None else buffer.parts(item):
                buffer.put(part)
        if buffer.can_rewind and rng.random() < BREAK:
            buffer.rewind(first)
            stream = encoder(made, config)
        finished = buffer.is_empty and has_ended
        if buffer.is_empty and not finished:
            continue
        new = (
            stream.finish()
            if finished
            else stream.feed(stream_pb2.EncodeStreamRequest.FromString(buffer.take()).data)
        )
        answer = stream_pb2.EncodeStreamResponse(
            ids=new, bytes_consumed=stream.bytes_consumed, finished=finished
        )
        assert buffer.read(answer)
        ids += answer.ids
        first = first or answer
    expected = made.encode(
        text.decode(), disallowed_special=(), add_special_tokens=add_special_tokens
    )
    assert ids == expected


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


@pytest.mark.parametrize(
    "name", ["tokenizer.json: byte level", "sentencepiece: default with bytes"]
)
@pytest.mark.parametrize("has_prefill", [False, True])
@pytest.mark.parametrize("ids_per_connection", [2, 3, 5, 7])
def test_an_offset_is_that_of_one_connection(
    name: str, has_prefill: bool, ids_per_connection: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_send_buffers, "MIN_CONTEXT_IDS", 3)
    made = encoding(name)
    letter = made.encode("𐍈")[-4:]  # a token for each byte
    words = made.encode("a t a t a hello world")
    ids = [*words, *letter, *words, letter[0], *words]
    config = stream_pb2.DecodeStreamConfig(errors=text_pb2.DECODE_ERRORS_STRICT)
    if has_prefill:
        config.prefill_ids[:] = [*words, *letter[:2]]  # which ends within a character
        ids[:0] = letter[2:]
    whole = decoder(made, config)
    expected = whole.feed(ids)
    assert isinstance(whole.fault, InvalidUnicode)

    buffer, connection, output = IdsBuffer(config, 8), Connection(made), ""
    for number, token_id in enumerate(ids):
        buffer.put([token_id])
        answer = connection.answer_to(buffer.take())
        buffer.read(answer)
        output += answer.text
        if connection.fault is not None:
            break
        if number % ids_per_connection == 0:
            buffer.rewind(None)
            connection = Connection(made)
    assert output == expected
    error = InvalidUtf8("", metadata={"byte_offset": str(connection.fault.byte_offset)})
    buffer.correct(error)
    assert error.byte_offset == whole.fault.byte_offset


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
