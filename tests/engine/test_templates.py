"""Templates around a text, compared with `tokenizers`: for pipelines and for rank tables."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    SpecialTokenFound,
    StreamCounter,
    StreamEncoder,
    extend_encoding,
    get_encoding,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.backends.varint import pack
from support.tokenizer_json import CORPUS, framed, oracle_of, template
from tokenizers import processors

RANKS, FORM = "byte level", "metaspace first, split"
TEXTS = ["", "a", "<s>", "hello </s> world", "na\u00efve \U0001f642\U0001f642", *CORPUS[:6]]
AS_TEXT: dict[str, Any] = {"disallowed_special": (), "add_special_tokens": True}

PROCESSORS = {
    "before": template("<s> $A"),
    "after": template("$A </s>"),
    "both, several": template("<s> <s> $A:0 </s>:1 <s>"),
    "neither": template("$A"),
    "Bert": lambda start, end: processors.BertProcessing(("</s>", end), ("<s>", start)),
    "Roberta": lambda start, end: processors.RobertaProcessing(("</s>", end), ("<s>", start)),
    "ByteLevel": lambda *_: processors.ByteLevel(),
    "a sequence": lambda start, end: processors.Sequence(
        [processors.ByteLevel(), template("<s> $A </s>")(start, end)]
    ),
    "a template that adds nothing, and another": lambda start, end: processors.Sequence(
        [template("$A")(start, end), template("</s> $A </s>")(start, end)]
    ),
}


def load(data: bytes, folder: Path, backend: BackendName | None = None) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_bytes(data)
    return load_encoding(EncodingSpec(name="made", file=file), backend=backend)


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", [RANKS, FORM])
def test_a_text_with_template_has_the_ids_of_tokenizers(
    backend: BackendName, kind: str, processor: str, tmp_path: Path
) -> None:
    data = framed(kind, PROCESSORS[processor])
    encoding, oracle = load(data, tmp_path, backend), oracle_of(data)
    assert (encoding.pipeline is None) == (kind == RANKS)
    oracle.encode_special_tokens = True  # special tokens in the text stay text
    expected = [oracle.encode(text).ids for text in TEXTS]
    for text, ids in zip(TEXTS, expected, strict=True):
        assert encoding.encode(text, **AS_TEXT) == ids
        assert encoding.encode_array(text, **AS_TEXT) == array("I", ids)
        assert encoding.encode_packed(text, **AS_TEXT) == pack(ids)
        assert encoding.encode_packed(text.encode(), **AS_TEXT) == pack(ids)
        assert encoding.count(text.encode(), **AS_TEXT) == len(ids)
        for limit in range(len(ids) + 3):
            assert encoding.count(text, limit=limit, **AS_TEXT) == min(len(ids), limit + 1)
            batch = encoding.count_batch([text, ""], limit=limit, **AS_TEXT)
            assert batch[0] == min(len(ids), limit + 1)
    assert encoding.encode_batch(TEXTS, **AS_TEXT) == expected
    assert encoding.count_batch(TEXTS, **AS_TEXT) == [len(ids) for ids in expected]
    assert encoding.encode_batch([], **AS_TEXT) == []
    frame = [encoding.special_tokens[name] for name in encoding.template_names]
    assert frame == expected[0] == encoding.template.around(())
    plain = {"disallowed_special": ()}
    assert encoding.encode("a", **plain) == oracle.encode("a", add_special_tokens=False).ids  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["byte", "code_point", "utf16"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_template_is_at_both_ends_of_the_text(
    backend: BackendName, unit: Any, text: str, tmp_path: Path
) -> None:
    encoding = load(framed(RANKS, template("<s> $A </s> </s>")), tmp_path, backend)
    ids, offsets = encoding.encode_with_offsets(text, unit=unit, **AS_TEXT)
    assert ids == encoding.encode(text, **AS_TEXT)
    _, inner = encoding.encode_with_offsets(text, unit=unit, disallowed_special=())
    length = {
        "byte": len(text.encode()),
        "code_point": len(text),
        "utf16": len(text.encode("utf-16-le")) // 2,
    }[unit]
    assert offsets == [0, *inner, length, length]


def test_a_template_permits_no_special_token_in_the_text(
    backend: BackendName, tmp_path: Path
) -> None:
    encoding = load(framed(RANKS, template("<s> $A </s>")), tmp_path, backend)
    start, end = encoding.special_tokens["<s>"], encoding.special_tokens["</s>"]
    for text in ("</s>", "a<s>", "a</s></s>b"):
        ids = encoding.encode(text, **AS_TEXT)
        assert (ids[0], ids[-1]) == (start, end)
        assert not {start, end}.intersection(ids[1:-1])
        with pytest.raises(SpecialTokenFound):
            encoding.encode(text, add_special_tokens=True)
        assert encoding.count(text, add_special_tokens=True) == len(ids)
    assert encoding.encode("<s>", add_special_tokens=True, allowed_special={"<s>"}) == [
        start,
        start,
        end,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RANKS, FORM])
@pytest.mark.parametrize("single", ["<s> $A </s>", "<s> $A", "$A </s>"])
def test_streams_have_one_template(
    backend: BackendName, kind: str, single: str, tmp_path: Path
) -> None:
    encoding = load(framed(kind, template(single)), tmp_path, backend)
    rng = random.Random(7)
    for text in TEXTS:
        ids = encoding.encode(text, **AS_TEXT)
        for _ in range(8):
            cuts = sorted(rng.randrange(len(text) + 1) for _ in range(3))
            bounds = zip([0, *cuts], [*cuts, len(text)], strict=True)
            pieces = [text[start:end] for start, end in bounds]
            lists, packed = (StreamEncoder(encoding, **AS_TEXT) for _ in range(2))
            assert [*(i for p in pieces for i in lists.feed(p)), *lists.finish()] == ids
            parts = [*map(packed.feed_packed, pieces), packed.finish_packed()]
            assert b"".join(parts) == pack(ids)
        assert StreamEncoder(encoding, **AS_TEXT).finish() == encoding.encode("", **AS_TEXT)
        for limit in (None, *range(len(ids) + 2)):
            counter = StreamCounter(encoding, limit=limit, **AS_TEXT)
            for piece in pieces:
                counter.feed(piece)
            expected = len(ids) if limit is None else min(len(ids), limit + 1)
            assert counter.finish() == expected
    with pytest.raises(InvalidOption):
        StreamCounter(encoding, limit=-1, add_special_tokens=True)


def test_a_template_is_part_of_the_fingerprint(backend: BackendName, tmp_path: Path) -> None:
    """Also for rank tables: with `add_special_tokens` it decides ids."""
    for kind in (RANKS, FORM):
        prints = [
            load(framed(kind, template(single)), tmp_path, backend).fingerprint
            for single in ("$A", "<s> $A", "$A <s>", "<s> $A </s>", "<s> <s> $A")
        ]
        assert len(set(prints)) == len(prints)
        none = framed(kind, lambda *_: None)
        assert load(none, tmp_path, backend).fingerprint == prints[0]


def test_an_extended_encoding_keeps_its_template(backend: BackendName, tmp_path: Path) -> None:
    encoding = load(framed(RANKS, template("<s> $A </s>")), tmp_path, backend)
    more = extend_encoding(encoding, ["<more>"], name="more")
    assert more.encode("ab", **AS_TEXT) == encoding.encode("ab", **AS_TEXT)
    assert more.template_names == ("<s>", "</s>")


def test_a_file_without_a_template_adds_nothing(backend: BackendName) -> None:
    encoding = get_encoding("r50k_base", backend=backend)
    assert (len(encoding.template), encoding.template_names) == (0, ())
    for text in TEXTS:
        assert encoding.encode(text, **AS_TEXT) == encoding.encode_ordinary(text)
