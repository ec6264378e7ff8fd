"""Streams of pipelines: ids and text equal those of one call, for every cut."""

from __future__ import annotations

import gc
import random
import tracemalloc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    SpecialTokenFound,
    StreamCounter,
    StreamDecoder,
    StreamEncoder,
    UnknownTokenId,
    can_stream,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.streaming import splitter
from bytepair_engine.streaming.pipeline_split_points import pipeline_split_points
from support.hard_text import random_texts
from support.tokenizer_json import ADDED, CORPUS, KINDS, SPECIAL, made, trained
from tokenizers import AddedToken, Tokenizer, models

SEED = 20261121


def load(kind: str, folder: Path, backend: BackendName) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_bytes(made(kind))
    return load_encoding(EncodingSpec(name="made", file=file), backend=backend)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_deltas_joined_are_the_text(backend: BackendName, kind: str, tmp_path: Path) -> None:
    """For all ids, including those at the start and at the end of a text."""
    encoding = load(kind, tmp_path, backend)
    rng = random.Random(f"{SEED} {kind}")
    ids = range(encoding.n_vocab)
    for _ in range(25):
        chosen = rng.choices(ids, k=rng.randrange(8))
        whole = encoding.decode(chosen)
        cut = rng.randrange(len(chosen) + 1)
        for pieces in ([[i] for i in chosen], [chosen[:cut], chosen[cut:]], [chosen]):
            decoder = StreamDecoder(encoding)
            text = "".join([*map(decoder.feed, pieces), decoder.finish()])
            assert text == whole, (SEED, chosen)
            assert decoder.tokens_consumed == len(chosen)
            assert decoder.pending_bytes == 0
            as_bytes = StreamDecoder(encoding, as_bytes=True)
            data = b"".join([*map(as_bytes.feed, pieces), as_bytes.finish()])
            assert data == encoding.decode_bytes(chosen), (SEED, chosen)


def test_a_prefill_is_the_start_of_the_text(backend: BackendName, tmp_path: Path) -> None:
    encoding = load("spaces normalised", tmp_path, backend)
    ids = encoding.encode("hello world")
    prompt, rest = ids[:2], ids[2:]
    decoder = StreamDecoder(encoding, prefill_ids=prompt)
    text = decoder.feed(rest) + decoder.finish()
    assert encoding.decode(prompt) + text == "hello world"
    # A new stream drops the space that stands for the start of a text; this one must not.
    space = encoding.encode("a b")[1:]
    assert encoding.decode(space) == "b" != encoding.decode([*encoding.encode("a"), *space])[1:]


def test_nothing_is_lost_at_an_error_or_an_aborted_stream(
    backend: BackendName, tmp_path: Path
) -> None:
    """The last token of this kind is held, because it gives a space unless it is the last."""
    encoding = load("an end of word", tmp_path, backend)
    ids = encoding.encode("hello world")
    for end in ("abandon", "fault"):
        decoder = StreamDecoder(encoding)
        text = "".join(decoder.feed([i]) for i in ids)
        assert text == "hello "
        assert decoder.pending_bytes > 0
        if end == "abandon":
            text += decoder.abandon()
        else:
            text += decoder.feed([encoding.n_vocab])
            with pytest.raises(UnknownTokenId) as fault:
                decoder.finish()
            assert fault.value.index == len(ids) == decoder.tokens_consumed
        assert text == "hello world"


def test_a_stop_string_reports_its_tokens(backend: BackendName, tmp_path: Path) -> None:
    encoding = load("metaspace always, split", tmp_path, backend)
    ids = encoding.encode("ab hello world")
    for pieces in ([[i] for i in ids], [ids]):
        decoder = StreamDecoder(encoding, stop=["hello"])
        assert "".join(map(decoder.feed, pieces)) == "ab "
        assert encoding.decode(ids[: decoder.tokens_consumed]).startswith("ab hello")
        assert "hello" not in encoding.decode(ids[: decoder.tokens_consumed - 1])


#: Rejected kinds: their effect at a position depends on more than the neighbouring text.
REFUSED = {
    "steps after byte level",
    "byte level with an end of word",
    "stripped",
    "a map of characters",
    *(kind for kind in KINDS if kind.startswith(("split ", "BERT's "))),
}


def texts(kind: str, encoding: Encoding) -> Iterator[str]:
    rng = random.Random(f"{SEED} {kind}")
    names = [token.content for token in [*ADDED, *SPECIAL]]
    words = [*" ".join(CORPUS[:6]).split(" "), " ", "  ", "\n", "e\u0301", "한", "가", "ﾞ", *names]
    for _ in range(15):
        yield " ".join(rng.choices(words, k=rng.randrange(1, 12)))
        yield "".join(rng.choices(words, k=rng.randrange(1, 12)))
    yield from random_texts(rng, encoding.token_byte_values(), 20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settle_after", [1, 4096])
def test_ids_do_not_depend_on_the_cut(
    backend: BackendName,
    kind: str,
    settle_after: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splitter, "_SETTLE_AFTER", settle_after)
    encoding = load(kind, tmp_path, backend)
    assert can_stream(encoding) is (kind not in REFUSED)
    if kind in REFUSED:
        with pytest.raises(InvalidOption):
            StreamEncoder(encoding)
        return
    rng = random.Random(f"{SEED} {kind}")
    early = 0
    for text in texts(kind, encoding):
        for allowed in (frozenset(), frozenset(encoding.special_tokens)):
            options: Any = {"allowed_special": allowed, "disallowed_special": ()}
            whole = encoding.encode(text, **options)
            size = rng.choice([1, 2, 5, 100])
            pieces = [text[i : i + size] for i in range(0, len(text), size)]
            encoder, counter = (
                StreamEncoder(encoding, **options),
                StreamCounter(encoding, **options),
            )
            packed = StreamEncoder(encoding, **options)
            given = [encoder.feed(piece) for piece in pieces]
            early += any(given)
            ids = [i for some in [*given, encoder.finish()] for i in some]
            assert ids == whole, (SEED, text, size)
            data = b"".join([*map(packed.feed_packed, pieces), packed.finish_packed()])
            assert data == encoding.encode_packed(text, **options), (SEED, text, size)
            for piece in pieces:
                counter.feed(piece)
            assert counter.finish() == len(whole), (SEED, text, size)
    assert early > 20  # ids arrive before the text ends


def special(*names: str, **options: bool) -> list[AddedToken]:
    return [AddedToken(name, special=True, normalized=False, **options) for name in names]


def with_added(kind: str, added: list[AddedToken], folder: Path) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_bytes(trained(**{**KINDS[kind], "added": added}))
    return load_encoding(EncodingSpec(name="made", file=file), backend="native")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REFUSED])
def test_adjacent_special_tokens_are_not_one_piece(kind: str, size: int, tmp_path: Path) -> None:
    encoding = with_added(kind, special("[X]", "[/X]"), tmp_path)
    text = "hello " + "[X][/X][X]" * 200 + " ab[/X][X]" * 9 + " hello"
    options: Any = {"allowed_special": "all", "disallowed_special": ()}
    encoder = StreamEncoder(encoding, max_pending_bytes=80, **options)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    ids = [i for piece in pieces for i in encoder.feed(piece)] + encoder.finish()
    assert ids == encoding.encode(text, **options)


@pytest.mark.parametrize(
    "added",
    [
        [*special("[X]", "[Y]"), AddedToken("][", normalized=False)],
        [*special("[X]", "[Y]"), AddedToken("]", normalized=False, rstrip=True)],
        special("[X]", "[Y]", "[X][Y]"),
        special("[X]", "[Y]", "Y] a"),
        special("[X]", "[Y]", "][Y]["),
        special("[X]", "[Y] "),
        special("[X]", " [Y]"),
        special("[X]", "[Y]", lstrip=True),
        special("[X]", "[Y]", rstrip=True),
        special("[X]", "[Y]", single_word=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["byte level, prefix and NFC", "metaspace always, split"])
def test_no_cut_divides_adjacent_special_tokens_that_others_overlap(
    kind: str, added: list[AddedToken], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitter, "_SETTLE_AFTER", 1)
    encoding = with_added(kind, added, tmp_path)
    names = sorted(encoding.special_tokens)
    rng = random.Random(SEED)
    for _ in range(60):
        text = "".join(rng.choices(["[X]", "[Y]", "[X][Y]", "]", " ", "ab"], k=rng.randrange(9)))
        for allowed in (names, [name for name in names if name in ("[X]", "[Y]")]):
            options: Any = {"allowed_special": allowed, "disallowed_special": ()}
            encoder = StreamEncoder(encoding, **options)
            ids = [i for character in text for i in encoder.feed(character)] + encoder.finish()
            assert ids == encoding.encode(text, **options), (SEED, text)


def test_a_disallowed_token_is_found_at_its_position(backend: BackendName, tmp_path: Path) -> None:
    encoding = load("metaspace first, split", tmp_path, backend)
    encoder = StreamEncoder(encoding)

    def feed_all() -> None:
        for piece in ("hello é wor", "ld and ", "<s", "> x"):
            encoder.feed(piece)
        encoder.finish()

    with pytest.raises(SpecialTokenFound) as found:
        feed_all()
    assert (found.value.token, found.value.byte_offset) == ("<s>", 19)


def test_a_special_token_that_begins_in_the_preceding_text_is_rejected(
    backend: BackendName, tmp_path: Path
) -> None:
    """No earlier stream can have ended there. As text, its characters are ordinary."""
    encoding = load("metaspace first, split", tmp_path, backend)
    allowed: list[Any] = [(), "all"]
    for each in allowed:
        encoder = StreamEncoder(encoding, allowed_special=each, preceding_text="a<")
        with pytest.raises(InvalidOption, match="preceding_text"):
            (encoder.feed("s> b"), encoder.finish())
    encoder = StreamEncoder(encoding, disallowed_special=(), preceding_text="a<")
    ids = encoding.encode("a<", disallowed_special=()) + encoder.feed("s> b") + encoder.finish()
    assert ids == encoding.encode("a<s> b", disallowed_special=())


def test_no_cut_divides_the_white_space_that_a_token_strips(
    backend: BackendName, tmp_path: Path
) -> None:
    """`<|end|>` strips the white space before it, even if that arrived much earlier."""
    data = trained(**{**KINDS["metaspace first, split"], "added": ()})
    file = tmp_path / "tokenizer.json"
    file.write_bytes(data)
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    options: Any = {"allowed_special": "all", "disallowed_special": ()}
    for text in ("ab\t <|end|> ab", "ab\t\t \t<|end|>", "ab\t ab"):
        encoder = StreamEncoder(encoding, **options)
        ids = [i for character in text for i in encoder.feed(character)] + encoder.finish()
        assert ids == encoding.encode(text, **options), text


@pytest.mark.parametrize(
    ("kind", "token", "text"),
    [
        ("normalised, Lowercase", AddedToken("olleh", single_word=True), "ab OLLEHs ab"),
        ("normalised, NFKC", AddedToken("x "), "ab \uff58 ab"),
    ],
    ids=str,
)
def test_no_cut_divides_text_that_normalises_to_an_added_token(
    backend: BackendName, kind: str, token: AddedToken, text: str, tmp_path: Path
) -> None:
    """A normaliser can turn other text into the spelling of a token."""
    file = tmp_path / "tokenizer.json"
    file.write_bytes(trained(**{**KINDS[kind], "added": (token,)}))
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    encoder = StreamEncoder(encoding)
    ids = [i for character in text for i in encoder.feed(character)] + encoder.finish()
    assert ids == encoding.encode(text)


def test_a_model_that_takes_whole_pieces_has_no_split_points(
    backend: BackendName, tmp_path: Path
) -> None:
    """`aa` is one token alone, and two before `b`, with which no token has it."""
    model = models.BPE({"a": 0, "b": 1, "aa": 2}, [], ignore_merges=True)
    file = tmp_path / "tokenizer.json"
    file.write_text(Tokenizer(model).to_str())
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    assert [encoding.encode(text) for text in ("aa", "aab")] == [[2], [0, 0, 1]]
    with pytest.raises(InvalidOption, match="cannot be streamed"):
        StreamEncoder(encoding)
    chunks = encoding.split("aab" * 40, 4, level="code_point")
    assert [chunk.count for chunk in chunks] == [encoding.count(chunk.text) for chunk in chunks]


@pytest.mark.slow
def test_the_memory_of_seen_characters_is_bounded(tmp_path: Path) -> None:
    """gigatoken #36: a cache that grows with the distinct content of texts."""
    pipeline = load("spaces normalised", tmp_path, "native").pipeline
    assert pipeline is not None
    points = pipeline_split_points(pipeline)
    assert points is not None
    rng = random.Random(SEED)

    def look(times: int) -> None:
        for _ in range(times):
            a, b = rng.choice("abcdehlowrti"), chr(rng.randrange(0x10000, 0x30000))
            points.local(a + b, 2)

    look(10_000)
    tracemalloc.start()
    try:
        look(20_000)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 2 << 20, (SEED, grown)


def test_streams_do_not_keep_their_encoding_alive(backend: BackendName, tmp_path: Path) -> None:
    encoding = load("an end of word", tmp_path, backend)
    ids = StreamEncoder(encoding).feed("hello world ")
    StreamDecoder(encoding).feed(ids)
    alive = weakref.ref(encoding)
    del encoding
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("kind", ["an end of word", "words, unknown fused", "words, unknown"])
def test_a_control_character_is_not_white_space(kind: str, tmp_path: Path) -> None:
    r"""U+001C to U+001F are white space for `str.isspace`, and not for `\s`."""
    encoding = load(kind, tmp_path, "native")
    for text in (".\x1c", "a.\x1d b", ".\x1e\x1f.", "a\x1f", ".\x85."):
        whole = encoding.encode_ordinary(text)
        for cut in range(len(text) + 1):
            encoder = StreamEncoder(encoding, disallowed_special=())
            ids = [*encoder.feed(text[:cut]), *encoder.feed(text[cut:]), *encoder.finish()]
            assert ids == whole, (text, cut)
