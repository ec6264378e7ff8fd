"""Files of every kind against `tokenizers`: ids, starts of tokens, and decoded text."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    SpecialTokenFound,
    UnknownTokenId,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hard_text import random_texts
from support.tokenizer_json import ADDED, KINDS, SPECIAL, made, oracle_of
from tokenizers import AddedToken

SEED = 20261121

#: Kinds whose offsets equal those of `tokenizers` only if every character becomes a token: it
#: counts from the last token that it returned.
GAPS = {"words, no unknown", "some bytes", "a map of characters"}


def load(data: bytes, folder: Path, backend: BackendName, **keys: object) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_bytes(data)
    spec = EncodingSpec(name="made", file=file, **keys)  # type: ignore[arg-type]
    return load_encoding(spec, backend=backend)


def texts(kind: str, tokens: list[bytes]) -> Iterator[str]:
    rng = random.Random(f"{SEED} {kind}")
    names = [token.content for token in [*ADDED, *SPECIAL]]
    yield ""
    for name in names:
        for space in ("", " ", "  ", "\n", "\t", "\u3000", "a", "é", "_", "\u0301"):
            yield f"{space}{name}{space}{name}x{space}"
    for text in random_texts(rng, tokens, 40):
        yield text
        around = [text[:8], text[-4:], " ", "\n", "a", *names]
        yield "".join(rng.choice(around) for _ in range(6))


def in_order(text: str) -> bool:
    """Return whether no normalisation reorders marks, after which offsets are ambiguous."""
    return unicodedata.normalize("NFKD", text) == "".join(
        unicodedata.normalize("NFKD", character) for character in text
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ids_offsets_and_text_equal_those_of_tokenizers(
    backend: BackendName, kind: str, tmp_path: Path
) -> None:
    data = made(kind)
    encoding, oracle = load(data, tmp_path, backend), oracle_of(data)
    for text in texts(kind, [token.encode() for token in oracle.get_vocab()]):
        for allowed in (False, True):
            oracle.encode_special_tokens = not allowed
            expected = oracle.encode(text, add_special_tokens=False)
            options: dict[str, Any] = {
                "allowed_special": "all" if allowed else (),
                "disallowed_special": (),
            }
            ids, starts = encoding.encode_with_offsets(text, **options)
            assert ids == expected.ids, (SEED, text)
            assert encoding.encode(text, **options) == ids, (SEED, text)
            assert encoding.count(text, **options) == len(ids), (SEED, text)
            if kind not in GAPS and in_order(text):
                assert starts == [start for start, _ in expected.offsets], (SEED, text)
            try:
                back = oracle.decode(expected.ids, skip_special_tokens=False)
            except BaseException:  # its decoder panics on some empty texts
                continue
            if "\ufffd" not in back:  # libraries differ for bytes that are not text
                assert encoding.decode(ids) == back, (SEED, text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_core_and_the_reference_agree_on_offsets(kind: str, tmp_path: Path) -> None:
    """In each unit, including the cases where `tokenizers` differs."""
    data = made(kind)
    reference, core = load(data, tmp_path, "reference"), load(data, tmp_path, "native")
    assert core.backend == "native"
    rng = random.Random(f"{SEED} {kind}")
    tokens = [token.encode() for token in oracle_of(data).get_vocab()]
    for text in rng.sample(list(texts(kind, tokens)), 60):
        options: dict[str, Any] = {
            "allowed_special": rng.choice(["all", ()]),
            "disallowed_special": (),
            "unit": rng.choice(["byte", "byte", "utf16"]),
        }
        expected = reference.encode_with_offsets(text, **options)
        assert core.encode_with_offsets(text, **options) == expected, (SEED, text, options)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=20))
@pytest.mark.parametrize("kind", ["byte level, prefix and NFC", "metaspace first, split"])
def test_random_text_has_the_ids_of_tokenizers(
    kind: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = made(kind)
    encoding = load(data, tmp_path_factory.mktemp("made"), "reference")
    oracle = oracle_of(data)
    oracle.encode_special_tokens = True
    assert encoding.encode_ordinary(text) == oracle.encode(text, add_special_tokens=False).ids


def test_a_special_token_must_be_allowed_in_every_form(
    backend: BackendName, tmp_path: Path
) -> None:
    """`<S>x` is found in normalised text, and `<s>X` normalises to it."""
    encoding = load(made("normalised, Lowercase"), tmp_path, backend)
    with pytest.raises(SpecialTokenFound) as found:
        encoding.encode("é<s>X")
    assert (found.value.token, found.value.byte_offset) == ("<s>", 2)
    with pytest.raises(SpecialTokenFound) as found:
        encoding.encode("é<s>X", disallowed_special={"<S>x"})
    assert (found.value.token, found.value.byte_offset) == ("<S>x", 2)
    with pytest.raises(SpecialTokenFound) as found:  # also beyond a limit
        encoding.count("é<tool><s>X", disallowed_special={"<S>x"}, limit=0)
    assert (found.value.token, found.value.byte_offset) == ("<S>x", 8)
    special = encoding.special_tokens["<S>x"]
    assert special not in encoding.encode_ordinary("é<s>X")
    assert special in encoding.encode("é<s>X", allowed_special={"<S>x"}, disallowed_special=())


def test_a_declaration_can_make_added_tokens_special(backend: BackendName, tmp_path: Path) -> None:
    data = made("byte level")
    always = load(data, tmp_path, backend)
    tool = oracle_of(data).token_to_id("<tool>")
    assert tool in always.encode("a <tool>")
    assert "<tool>" not in always.special_tokens
    guarded = load(data, tmp_path, backend, also_special=("<tool>",))
    assert guarded.special_tokens["<tool>"] == tool
    with pytest.raises(SpecialTokenFound):
        guarded.encode("a <tool>")
    assert guarded.encode("a <tool>", allowed_special={"<tool>"})[-1] == tool
    assert guarded.fingerprint != always.fingerprint


def test_a_declaration_can_make_tokens_of_the_vocabulary_special(
    backend: BackendName, tmp_path: Path
) -> None:
    """Converted files name them only in tokenizer_config.json, and text may merge to them."""
    vocabulary = {"a": 0, "<": 1, "t": 2, ">": 3, "<t": 4, "<t>": 5}
    model = {"type": "BPE", "vocab": vocabulary, "merges": ["< t", "<t >"]}
    data = json.dumps({"model": model}).encode()
    assert load(data, tmp_path, backend).encode("a<t>") == oracle_of(data).encode("a<t>").ids
    encoding = load(data, tmp_path, backend, also_special=("<t>",))
    oracle = oracle_of(data)
    oracle.add_special_tokens([AddedToken("<t>", normalized=False)])
    assert encoding.special_tokens == {"<t>": 5}
    with pytest.raises(SpecialTokenFound):
        encoding.encode("a<t>")
    assert encoding.encode("a<t><t", allowed_special={"<t>"}) == oracle.encode("a<t><t").ids
    assert encoding.encode_ordinary("a<t>") == [0, 4, 3]


def test_a_vocabulary_without_merges_is_valid(backend: BackendName, tmp_path: Path) -> None:
    """Found by fuzzing: the core rejected the address of an empty array."""
    data = b'{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}'
    ids = load(data, tmp_path, backend).encode("abba")
    assert ids == oracle_of(data).encode("abba").ids == [0, 1, 1, 0]


def test_a_single_large_id_does_not_allocate_the_ids_below_it(
    backend: BackendName, tmp_path: Path
) -> None:
    """A dense table would take 24 GB for a file of some kilobytes."""
    content = json.loads(made("words, unknown"))
    content["added_tokens"] = []
    content["model"]["vocab"]["hello"] = MAX_TOKEN_ID
    encoding = load(json.dumps(content).encode(), tmp_path, backend)
    ids, starts = encoding.encode_with_offsets("a hello", disallowed_special=())
    assert (ids[1:], starts) == ([MAX_TOKEN_ID], [0, 2])
    assert encoding.decode(ids) == "a hello"
    with pytest.raises(UnknownTokenId):
        encoding.decode([MAX_TOKEN_ID - 1])


def test_characters_that_a_map_drops_at_the_start_move_the_text_there(
    backend: BackendName, tmp_path: Path
) -> None:
    """The map of `tokenizers` does not count them, so that the next one is the first."""
    content = json.loads(made("a map of characters"))
    content["pre_tokenizer"] = {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False
    }  # fmt: skip
    data = json.dumps(content).encode()
    encoding, oracle = load(data, tmp_path, backend), oracle_of(data)
    for text in ("a", "\x13a", "\x13\x14ab", "a\x13b", "\x13⓯", "\x13", "<tool>\x13a", "\x13ﬁ"):
        ids, starts = encoding.encode_with_offsets(text)
        assert ids == oracle.encode(text, add_special_tokens=False).ids == encoding.encode(text)
        assert starts == sorted(starts)


def test_offsets_never_decrease_if_tokens_are_reordered(
    backend: BackendName, tmp_path: Path
) -> None:
    """White space inside the stretch that the added token before it stripped, and an unknown
    character after the bytes of the next one."""
    content = json.loads(made("some bytes"))
    first = {**content["added_tokens"][0], "special": False}
    added = len(content["model"]["vocab"])
    content["added_tokens"] = [
        {**first, "content": "<a>", "id": added, "rstrip": True},
        {**first, "content": "\u2003", "id": added + 1, "lstrip": True},
    ]
    data = json.dumps(content).encode()
    encoding, oracle = load(data, tmp_path, backend), oracle_of(data)
    text = "a☃éab☃☃é é☃"
    ids, starts = encoding.encode_with_offsets(text)
    assert ids == oracle.encode(text, add_special_tokens=False).ids
    assert starts == sorted(starts)
    # White space that the token before it stripped is not a token of its own.
    assert encoding.encode("<a>\u2003a") == oracle.encode("<a>\u2003a").ids == [added, ids[0]]
    # `tokenizers` panics, because the second token would start after its end.
    ids, starts = encoding.encode_with_offsets("<a> \u2003\u2003 a")
    assert (ids[:3], starts[:3]) == ([added, added + 1, added + 1], [0, 4, 5])
    assert starts == sorted(starts)
