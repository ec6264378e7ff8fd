"""Invalid files: each is rejected with the file, the member and a remedy. Large or deeply nested
ones are rejected before they use memory or time."""

from __future__ import annotations

import base64
import copy
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex
from bytepair_engine import EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.formats.detect import detect
from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.replacement_budget import ReplacementBudget
from support.tokenizer_json import made

WHOLE = json.loads(made("byte level"))
CHARACTERS = json.loads(made("words, unknown"))
Edit = Callable[[dict[str, Any]], object]


def added(root: dict[str, Any], **members: Any) -> object:
    return root["added_tokens"][0].update(members)


def step(**members: Any) -> Edit:
    return lambda root: root.update(normalizer=members)


def pre(**members: Any) -> Edit:
    return lambda root: root.update(pre_tokenizer=members)


def decoder(*steps: dict[str, Any]) -> Edit:
    return lambda root: root.update(decoder={"type": "Sequence", "decoders": list(steps)})


def merges(root: dict[str, Any], *more: Any) -> object:
    return root["model"]["merges"].extend(more)


LONGER = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
METASPACE = {"type": "Metaspace", "replacement": "\u2581"}

#: An edit of a valid file, and the expected error.
FAULTS: dict[str, tuple[Edit, str]] = {
    "another version": (lambda r: r.update(version="2.0"), "version: it is '2.0'"),
    "another model": (lambda r: r["model"].update(type="Unigram"), "'Unigram' are not supported"),
    "no type and no merges": (lambda r: r.update(model={"vocab": {}}), "only models of type BPE"),
    "no model": (lambda r: r.pop("model"), "it is JSON of an unknown format"),
    "no vocab": (lambda r: r["model"].pop("vocab"), "model: it has no 'vocab'"),
    "empty vocab": (lambda r: r["model"].update(vocab={}), "model.vocab: it is empty"),
    "an id in words": (lambda r: r["model"]["vocab"].update(a="1"), "'a' is not an integer"),
    "a negative id": (lambda r: r["model"]["vocab"].update(a=-1), "'a' is not within 0"),
    "a large id": (lambda r: r["model"]["vocab"].update(a=2**31), "'a' is not within 0"),
    "an id twice": (lambda r: r["model"]["vocab"].update(zzz=7), "have one id, 7"),
    "a lone surrogate": (lambda r: r["model"]["vocab"].update({"\ud800": 9999}), "lone surrogate"),
    "a lone surrogate in a prefix": (
        lambda r: r["model"].update(continuing_subword_prefix="\ud800"),
        "model.continuing_subword_prefix: it holds a lone surrogate",
    ),
    "a lone surrogate that is prepended": (
        lambda r: r.update(normalizer={"type": "Prepend", "prepend": "\ud800"}),
        "normalizer.prepend: it holds a lone surrogate",
    ),
    "a mark among bytes": (
        lambda r: r.update(
            pre_tokenizer={
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"},
                ],
            }
        ),
        "pre_tokenizer: after ByteLevel, Metaspace adds a character for no byte",
    ),
    "a merge of three": (lambda r: merges(r, ["a", "b", "c"]), "is not two tokens"),
    "a merge of numbers": (lambda r: merges(r, [1, 2]), "is not two tokens"),
    "a merge of a missing token": (lambda r: merges(r, ["a", "zzzz"]), "'zzzz', which is not in"),
    "a merge to a missing token": (lambda r: merges(r, ["z", "z"]), "'zz', which is not in vocab"),
    "a merge that is not bytes": (
        lambda r: (
            r["model"]["vocab"].update({"€": 9000, "€€": 9001}),
            merges(r, ["€", "€"]),
            r["added_tokens"].clear(),
        ),
        "contains '€', which encodes no byte",
    ),
    "dropout": (lambda r: r["model"].update(dropout=0.1), "model.dropout: it skips merges"),
    "an unknown token that is none": (
        lambda r: (r.update(copy.deepcopy(CHARACTERS)), r["model"].update(unk_token="[?]")),
        "model.unk_token: the token '[?]' is not in model.vocab",
    ),
    "fuse_unk in words": (
        lambda r: (r.update(copy.deepcopy(CHARACTERS)), r["model"].update(fuse_unk="yes")),
        "model.fuse_unk: it must be true or false",
    ),
    "an empty added token": (lambda r: added(r, content=""), "added_tokens[0].content: an added"),
    "an added token without a flag": (
        lambda r: r["added_tokens"][0].pop("special"),
        "added_tokens[0]: it has no 'special'",
    ),
    "a special token of white space": (
        lambda r: added(r, content=" \n", special=True),
        "added_tokens[0].content: a special token is only white space",
    ),
    "an added token elsewhere": (lambda r: added(r, id=9), "added_tokens[0].id: the id of"),
    "an added token twice": (
        lambda r: r["added_tokens"].append({**r["added_tokens"][0], "rstrip": True}),
        "is added a second time",
    ),
    "an added token that vanishes": (
        lambda r: (
            r.update(normalizer={"type": "Strip", "strip_left": True, "strip_right": True}),
            added(r, content="\t", normalized=True),
        ),
        "nothing is left of the token",
    ),
    "two added tokens that become one": (
        lambda r: (
            r.update(normalizer={"type": "Lowercase"}),
            added(r, content="<END>", normalized=True),
            r["added_tokens"][1].update(content="<end>", normalized=True),
        ),
        "are the same once they are normalised",
    ),
    "another normaliser": (step(type="Nmt"), "normalizer: the normalizer 'Nmt' is not supported"),
    "a normaliser without a type": (step(left=True), "normalizer: it has no 'type'"),
    "a map that is no base64": (
        step(type="Precompiled", precompiled_charsmap="*"),
        "normalizer.precompiled_charsmap: it is not base64",
    ),
    "a map that is none": (
        step(type="Precompiled", precompiled_charsmap=base64.b64encode(b"\xff" * 99).decode()),
        "normalizer.precompiled_charsmap: it is not a valid map",
    ),
    "a prefix of nothing": (step(type="Prepend", prepend=""), "normalizer.prepend: it is empty"),
    "a replacement of two patterns": (
        step(type="Replace", pattern={"String": "a", "Regex": "b"}, content="x"),
        "normalizer.pattern: it has both String and Regex",
    ),
    "a decoder of two patterns": (
        decoder({"type": "Replace", "pattern": {"String": "a", "Regex": "b"}, "content": "x"}),
        "decoder.decoders[0].pattern: it has both String and Regex",
    ),
    "a replacement of nothing": (
        step(type="Replace", pattern={"String": ""}, content="x"),
        "normalizer.pattern.String: it is empty",
    ),
    "replacements that multiply": (
        step(type="Sequence", normalizers=[LONGER] * 4),
        "normalizer: its steps can make a text more than 1000 times longer",
    ),
    "prefixes that multiply": (
        pre(type="Sequence", pretokenizers=[METASPACE] * 40),
        "pre_tokenizer: after the normalizer, its steps can make a text more than 1000 times",
    ),
    "another pre-tokenizer": (pre(type="UnicodeScripts"), "'UnicodeScripts' is not supported"),
    "a pattern that only Oniguruma has": (
        pre(type="Split", pattern={"Regex": r"ab\Kc"}, behavior="Isolated"),
        "pre_tokenizer.pattern.Regex: its regular expression cannot be run exactly: "
        "\\K at character 2",
    ),
    "a pattern that only a library that backtracks has": (
        pre(type="Split", pattern={"Regex": "(?<=a+b)c"}, behavior="Isolated"),
        "the split pattern: at character 0: a lookbehind",
    ),
    "a pattern of no kind": (
        pre(type="Split", pattern={"Glob": "*"}, behavior="Isolated"),
        'it must be {"String": …} or {"Regex": …}',
    ),
    "another behaviour": (
        pre(type="Split", pattern={"String": " "}, behavior="Dropped"),
        "pre_tokenizer.behavior: 'Dropped' is not one of Isolated",
    ),
    "a metaspace of two characters": (
        pre(type="Metaspace", replacement="__"),
        "pre_tokenizer.replacement: it must be one character",
    ),
    "byte level twice": (
        pre(
            type="Sequence",
            pretokenizers=[{"type": "ByteLevel", "add_prefix_space": False}] * 2,
        ),
        "pre_tokenizer: it contains ByteLevel twice",
    ),
    "another decoder": (decoder({"type": "CTC"}), "decoder.decoders[0]: the decoder 'CTC' is not"),
    "a decoder in a strange place": (
        decoder({"type": "Fuse"}, {"type": "ByteLevel"}),
        "decoder.decoders[1]: ByteLevel is not supported after the steps before it",
    ),
    "a template of two texts": (
        lambda r: r.update(
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {},
            }
        ),
        "it contains the text 2 times",
    ),
    "a template of an unknown id": (
        lambda r: r.update(
            post_processor={"type": "BertProcessing", "cls": ["x", 99999], "sep": ["x", 0]}
        ),
        "post_processor: no token has the id 99999",
    ),
    "a frame in a frame": (
        lambda r: r.update(
            post_processor={
                "type": "Sequence",
                "processors": [{"type": "BertProcessing", "cls": ["x", 0], "sep": ["x", 0]}] * 2,
            }
        ),
        "post_processor.processors[1]: it follows another post-processor with a template",
    ),
}


def rejected(data: bytes, folder: Path) -> VocabularyError:
    file = folder / "tokenizer.json"
    file.write_bytes(data)
    with pytest.raises(VocabularyError) as caught:
        load_encoding(EncodingSpec(name="made", file=file, format="tokenizer.json"))
    assert caught.value.source == str(file)
    assert caught.value.remedy
    assert len(str(caught.value)) < 2000
    return caught.value


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported_with_its_member(fault: str, tmp_path: Path) -> None:
    root = copy.deepcopy(WHOLE)
    edit, problem = FAULTS[fault]
    edit(root)
    error = rejected(json.dumps(root).encode(), tmp_path)
    assert problem in error.problem


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    data = made("byte level")
    for length in [*range(0, 60, 7), *range(60, len(data) - 1, len(data) // 20)]:
        rejected(data[:length], tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        b'{"model":' + b"[" * 500_000,
        b'{"model":' + b'{"a":' * 500_000,
        b'{"model":{"vocab":[' + b"0," * 9_000_000 + b"0]}}",
        b'{"model":{"vocab":{},"vocab":{}}}',
        b'{"model":{"merges":[],"vocab":{"a":NaN}}}',
    ],
    ids=["lists", "objects", "values", "a key twice", "NaN"],
)
def test_deep_or_large_json_is_rejected_cheaply(data: bytes, tmp_path: Path) -> None:
    """Rejected files are not built: apart from their text, they take little memory."""
    rejected(data, tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(VocabularyError):
            detect(data, "tokenizer.json")
        assert tracemalloc.get_traced_memory()[1] < len(data) + 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "problem"), [("<none>", "is missing"), (" ", "is part of most texts")]
)
def test_an_impossible_token_in_also_special_is_rejected(
    tmp_path: Path, name: str, problem: str
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": {"type": "BPE", "vocab": {"a": 0, " ": 1}, "merges": []}}')
    with pytest.raises(VocabularyError, match=f"'{name}', which is in also_special, {problem}"):
        load_encoding(EncodingSpec(name="made", file=file, also_special=(name,)))


def test_a_token_that_is_not_written_as_bytes_is_shown_and_never_in_text(tmp_path: Path) -> None:
    """Command-R's file has one: no merge produces it, so only its id decodes to it."""
    root = copy.deepcopy(WHOLE)
    root["added_tokens"] = []
    token_id = len(root["model"]["vocab"])
    root["model"]["vocab"]["€"] = token_id
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(root))
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    assert encoding.decode([token_id]) == "€"
    assert token_id not in encoding.encode("€")


def test_a_regular_expression_cannot_block_the_loading() -> None:
    node = Node(None, "decoder", "tokenizer.json", "write another")
    budget = ReplacementBudget(0.05)
    sound, endless = regex.compile("a+"), regex.compile("(?:a|aa)+c")
    assert budget.replaced(node, sound, "baab", "x") == "bxb"
    with pytest.raises(VocabularyError, match=r"decoder: .* because it backtracks"):
        budget.replaced(node, endless, "a" * 200, "x")


@pytest.mark.parametrize(
    "repeated",
    [
        {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000},
        {"type": "Replace", "pattern": {"Regex": "a"}, "content": "a" * 1000},
        {"type": "Metaspace", "replacement": "", "prepend_scheme": "never"},
        {"type": "BPEDecoder", "suffix": ""},
    ],
)
def test_replacements_cannot_multiply_a_token(repeated: dict[str, Any], tmp_path: Path) -> None:
    """Each step multiplies it, in a file of a few kilobytes."""
    steps = 24 if "content" not in repeated else 3
    root = copy.deepcopy(CHARACTERS)
    decoder(*[repeated] * steps)(root)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(root))
    with pytest.raises(VocabularyError, match=r"decoder.*: replacements add more than 16777216 "):
        load_encoding(EncodingSpec(name="made", file=file))
