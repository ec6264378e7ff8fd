"""Files in the shapes of published models against `tokenizers`: ids, offsets, templates and
text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import EncodingSpec, load_encoding
from support.hard_text import random_texts
from support.published_shapes import SHAPES, shaped
from support.tokenizer_json import CORPUS, oracle_of

SEED = 20261121


def texts(model: str, tokens: list[bytes]) -> Iterator[str]:
    rng = random.Random(f"{SEED} {model}")
    names = [token.content for token in SHAPES[model]["added"]]
    yield from ("", *CORPUS[:6], "a 1234 5 67\r\n\n x  \t (ok). «ok», ।ठीक। 中文，한국어 Ünï\u0301")
    for name in names:
        for space in ("", " ", "   ", "\n", "\u3000", "a", "\u0301"):
            yield f"{space}{name}{space}{name}x{space}"
    for text in random_texts(rng, tokens, 60):
        yield text
        yield "".join(rng.choice([text[:9], text[-5:], " ", "\n", *names]) for _ in range(6))


@pytest.mark.slow
@pytest.mark.parametrize("model", SHAPES)
def test_ids_offsets_templates_and_text(model: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(shaped(model))
    encoding, oracle = load_encoding(EncodingSpec(name="made", file=file)), oracle_of(shaped(model))
    framing = oracle.post_processor
    assert encoding.backend == "native"
    for text in texts(model, [token.encode() for token in oracle.get_vocab()]):
        for allowed in (False, True):
            oracle.encode_special_tokens = not allowed
            options: dict[str, Any] = {
                "allowed_special": "all" if allowed else (),
                "disallowed_special": (),
            }
            oracle.post_processor = None  # with it, white space is left out of offsets
            expected = oracle.encode(text)
            ids, starts = encoding.encode_with_offsets(text, **options)
            assert ids == expected.ids, (SEED, text)
            assert encoding.encode(text, **options) == ids, (SEED, text)
            assert starts == [start for start, _ in expected.offsets], (SEED, text)
            oracle.post_processor = framing
            framed = oracle.encode(text).ids
            assert encoding.encode(text, add_special_tokens=True, **options) == framed, (SEED, text)
            try:
                back = oracle.decode(ids, skip_special_tokens=False)
            except BaseException:  # its decoder panics on some empty texts
                continue
            if "\ufffd" not in back:
                assert encoding.decode(ids) == back, (SEED, text)
