"""Read the files of a declaration, by their format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bytepair_engine.backends.cores import Core
from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.as_ranks import rank_parts
from bytepair_engine.formats.detect import FORMATS, Detected, detect
from bytepair_engine.formats.gpt2_files import gpt2_pipeline
from bytepair_engine.formats.ranked import Ranked
from bytepair_engine.formats.sentencepiece import sentencepiece_pipeline
from bytepair_engine.formats.tekken import parse_tekken
from bytepair_engine.formats.tokenizer_json import pipeline_of
from bytepair_engine.pipeline.definition import Pipeline
from bytepair_engine.spec import EncodingSpec
from bytepair_engine.vocabulary.file import check_sha256, read_vocabulary_file, rejection
from bytepair_engine.vocabulary.patterns import resolve_pattern
from bytepair_engine.vocabulary.published import proposed_pattern
from bytepair_engine.vocabulary.rank_table import TableFault

#: The formats that contain neither a split pattern nor special tokens.
_BARE: Final = ("tiktoken", "gpt2")


@dataclass(frozen=True)
class Opened:
    """The content of a file, and its format.

    Attributes:
        data: The content, uncompressed.
        detected: The detected format.
    """

    data: bytes
    detected: Detected


def open_vocabulary(spec: EncodingSpec) -> Opened:
    """Read the file of a declaration, and detect its format.

    Args:
        spec: A declaration with a file, already checked.
    Raises:
        VocabularyError: The file cannot be read, does not match the declaration, or is not a
            vocabulary.
    """
    assert spec.file is not None  # checked by `EncodingSpec.check`
    data = read_vocabulary_file(spec.file)
    check_sha256(data, spec.sha256, str(spec.file))
    return Opened(data, _detected(spec, data, str(spec.file)))


def read_vocabulary(core: Core, spec: EncodingSpec, opened: Opened) -> Ranked | Pipeline:
    """Read the vocabulary of a declaration with a file.

    Args:
        core: The backend.
        spec: The declaration.
        opened: The opened file.
    Raises:
        VocabularyError: A file is invalid, or does not match the declaration.
    """
    source, data, detected = str(spec.file), opened.data, opened.detected
    _check_keys(spec, opened)
    try:
        if detected.format == "tiktoken":
            return _with_pattern(spec, core.parse_tiktoken(data))
        if detected.format == "gpt2":
            return _ranked_if_possible(core, _gpt2_pipeline(spec, data, source))
        if detected.format == "tekken":
            assert detected.root is not None  # it is JSON
            tekken = parse_tekken(detected.root)
            if missing := set(spec.also_special) - tekken.special_tokens.keys():
                problem = f"it has no special token {min(missing)!r}, which is in also_special"
                raise VocabularyError(source, problem, "correct also_special")
            table = core.from_items(tekken.items)
            pattern = resolve_pattern(tekken.pattern, source)
            return Ranked(table, pattern, tekken.special_tokens)
        if detected.format == "tokenizer.json":
            assert detected.root is not None  # it is JSON
            return _ranked_if_possible(
                core, pipeline_of(detected.root, also_special=spec.also_special)
            )
    except TableFault as fault:
        raise rejection(fault, source) from None
    return sentencepiece_pipeline(data, source, spec.also_special)


def _ranked_if_possible(core: Core, pipeline: Pipeline) -> Ranked | Pipeline:
    parts = rank_parts(pipeline, core.by_rank)
    if parts is None:
        return pipeline
    table = core.from_items(parts.items)
    return Ranked(table, parts.pattern, parts.special_tokens, pipeline.template)


def _detected(spec: EncodingSpec, data: bytes, source: str) -> Detected:
    """Detect the format. A declared format without its own signature is left to its reader."""
    if spec.format in (*_BARE, "sentencepiece"):
        return Detected(spec.format)
    detected = detect(data, source)
    if spec.format not in (None, detected.format):
        raise VocabularyError(
            source,
            f"it is {FORMATS[detected.format]}, and the declaration says {spec.format!r}",
            f'use the right file, or set format = "{detected.format}"',
        )
    return detected


def _check_keys(spec: EncodingSpec, opened: Opened) -> None:
    """Raise VocabularyError if a key is missing for the format, or not allowed with it."""

    def reject(problem: str, remedy: str) -> None:
        raise VocabularyError(f"encoding {spec.name!r}", problem, remedy)

    detected = opened.detected
    description = FORMATS[detected.format]
    if detected.format in _BARE:
        if spec.pattern is None:
            reject(
                f"no pattern is given, and the file, {description}, does not contain one",
                "add pattern to the declaration: " + proposed_pattern(opened.data),
            )
        if spec.also_special:
            reject(
                f"also_special is given, and {description} has no special tokens",
                "use special_tokens",
            )
    else:
        for key in ("pattern", "special_tokens"):
            if getattr(spec, key):
                reject(f"{key} is given, and {description} has its own", f"remove {key}")
    if (detected.format == "gpt2") != (spec.encoder_file is not None):
        reject(
            f"the file is {description}, and encoder_file is "
            f"{'missing' if spec.encoder_file is None else 'given'}",
            'give encoder_file with format "gpt2", and only then',
        )


def _with_pattern(spec: EncodingSpec, table: Any) -> Ranked:
    return Ranked(table, _pattern(spec), spec.special_tokens)


def _pattern(spec: EncodingSpec) -> str:
    return resolve_pattern(spec.pattern or "", f"encoding {spec.name!r}")


def _gpt2_pipeline(spec: EncodingSpec, data: bytes, source: str) -> Pipeline:
    assert spec.encoder_file is not None  # checked by `_check_keys`
    return gpt2_pipeline(
        data,
        read_vocabulary_file(spec.encoder_file),
        _pattern(spec),
        spec.special_tokens,
        merges_source=source,
        encoder_source=str(spec.encoder_file),
    )
