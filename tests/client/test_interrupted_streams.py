"""Streams whose connection breaks anywhere are resumed, for every kind of encoding."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from bytepair.v1 import stream_pb2, text_pb2
from bytepair_client import _send_buffers
from bytepair_client._errors import InvalidUtf8
from bytepair_client._send_buffers import (
    MIN_CONTEXT_IDS,
    IdsBuffer,
    TextBuffer,
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
