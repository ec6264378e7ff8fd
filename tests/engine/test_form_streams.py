"""The laws of streams for vocabularies that are forms: ids and text cut anywhere are those of one
call."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bytepair_engine import Encoding, EncodingSpec, StreamDecoder, UnknownTokenId, load_encoding
from bytepair_engine.backends import BackendName
from support.tokenizer_json import KINDS, made

SEED = 20261121


def load(kind: str, folder: Path, backend: BackendName) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_bytes(made(kind))
    return load_encoding(EncodingSpec(name="made", file=file), backend=backend)


@pytest.mark.parametrize("kind", KINDS)
def test_deltas_joined_are_the_text(backend: BackendName, kind: str, tmp_path: Path) -> None:
    """Whatever the ids are: those at the start and at the end of a text among them."""
    encoding = load(kind, tmp_path, backend)
    rng = random.Random(f"{SEED} {kind}")
    ids = range(encoding.n_vocab)
    for _ in range(60):
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
    # A stream of its own loses the space that stands for the start of a text, and no other.
    space = encoding.encode("a b")[1:]
    assert encoding.decode(space) == "b" != encoding.decode([*encoding.encode("a"), *space])[1:]


def test_nothing_is_lost_at_a_fault_or_where_a_stream_is_cut_off(
    backend: BackendName, tmp_path: Path
) -> None:
    """The last token of this kind is held, as it gives a space unless it is the last."""
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


def test_a_stop_string_counts_its_tokens(backend: BackendName, tmp_path: Path) -> None:
    encoding = load("metaspace always, split", tmp_path, backend)
    ids = encoding.encode("ab hello world")
    for pieces in ([[i] for i in ids], [ids]):
        decoder = StreamDecoder(encoding, stop=["hello"])
        assert "".join(map(decoder.feed, pieces)) == "ab "
        assert encoding.decode(ids[: decoder.tokens_consumed]).startswith("ab hello")
        assert "hello" not in encoding.decode(ids[: decoder.tokens_consumed - 1])
