"""Describe vocabulary files before they are served."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bytepair_engine import collector
from bytepair_engine.backends.cores import resolve
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.detect import Format
from bytepair_engine.formats.reading import open_vocabulary
from bytepair_engine.loading import load_opened
from bytepair_engine.pipeline.definition import Merges, Pipeline, Scores
from bytepair_engine.resources import Resources
from bytepair_engine.spec import EncodingSpec
from bytepair_engine.streaming.encoder import can_stream
from bytepair_engine.vocabulary.builtin import SHA256
from bytepair_engine.vocabulary.published import known_pattern, proposed_pattern

#: How many characters of a regular expression or of another value a step may show.
_LONGEST_VALUE: Final = 200


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a file holds.

    Attributes:
        file: The file.
        format: What it is, by its content.
        sha256: Of the file, uncompressed: 64 hexadecimal digits.
        official: The built-in encodings that have this very table.
        spec: A declaration that serves it, if it can be served.
        encoding: What that comes to; None if more must be declared.
        missing: What must be declared besides, in words; "" for nothing.
        known_pattern: The name of the pattern that goes with a published rank file; None for
            another file.
        steps: What is done to text, one line for each step; () where `encoding` is None.
        always_found: Tokens that text which contains them always becomes, though no request asks
            for it: added tokens that the file does not call special.
    """

    file: Path
    format: Format
    sha256: str
    official: tuple[str, ...]
    spec: EncodingSpec
    encoding: Encoding | None
    missing: str = ""
    known_pattern: str | None = None
    steps: tuple[str, ...] = ()
    always_found: tuple[str, ...] = ()

    @property
    def can_stream(self) -> bool:
        """Whether text can be streamed into it."""
        return self.encoding is not None and can_stream(self.encoding)


def inspect_file(spec: EncodingSpec) -> Inspection:
    """Say what the file of a declaration is and holds.

    Args:
        spec: The declaration; only its name and `file` are needed, and what a bare rank file
            lacks: `pattern`, `encoder_file`, `special_tokens`.
    Raises:
        VocabularyError: The file is no vocabulary, or none that can be served exactly.
    """
    if spec.file is None:
        raise VocabularyError(f"encoding {spec.name!r}", "no file is given", "add file")
    opened = open_vocabulary(spec)
    format_ = opened.detected.format
    sha256 = hashlib.sha256(opened.data).hexdigest()
    official = tuple(name for name, official in SHA256.items() if official == sha256)
    inspection = partial(
        Inspection,
        file=spec.file,
        format=format_,
        sha256=sha256,
        official=official,
        known_pattern=known_pattern(opened.data) if format_ == "tiktoken" else None,
    )
    missing = _missing(spec, format_, opened.data)
    if missing:
        return inspection(spec=spec, encoding=None, missing=missing)
    with collector.paused():
        encoding = load_opened(resolve(None), spec, opened, Resources())
    pipeline = encoding.pipeline
    return inspection(
        spec=spec,
        encoding=encoding,
        steps=(
            *(_rank_steps(encoding) if pipeline is None else _pipeline_steps(pipeline)),
            *_template_steps(encoding),
        ),
        always_found=()
        if pipeline is None
        else tuple(token.content for token in pipeline.added if not token.special),
    )


def _missing(spec: EncodingSpec, format_: Format, data: bytes) -> str:
    wanted = []
    if format_ in ("tiktoken", "gpt2") and spec.pattern is None:
        wanted.append(
            "pattern: this file does not carry one, and another gives other ids; "
            + proposed_pattern(data)
        )
    if format_ == "gpt2" and spec.encoder_file is None:
        wanted.append("encoder_file: vocab.json (or encoder.json), which holds the ids")
    return "; ".join(wanted)


def _rank_steps(encoding: Encoding) -> Iterator[str]:
    for pattern in encoding.pattern.split("\n"):
        yield f"split by {_shortened(pattern)}"
    yield "merge bytes, the lowest rank first"


def _pipeline_steps(pipeline: Pipeline) -> Iterator[str]:
    for step in (*pipeline.normalisers, *pipeline.pre_tokenizers):
        values = (f"{name}={_value(getattr(step, name))}" for name in step.__dataclass_fields__)
        yield f"{type(step).__name__}({', '.join(values)})"
    rule = {Merges: "by the list of merges", Scores: "the highest score first"}.get(
        type(pipeline.model.rule), "the lowest rank first"
    )
    yield f"merge {pipeline.model.units}, {rule}"
    if pipeline.model.byte_tokens:
        yield "fall back to the tokens of single bytes"
    if not pipeline.decoder.is_plain:
        yield "decode by the place in the sequence: the first token's space is not shown"


def _template_steps(encoding: Encoding) -> Iterator[str]:
    before = len(encoding.template.before)
    names = encoding.template_names
    if names:
        frame = " ".join([*names[:before], "…", *names[before:]])
        yield f"on request (add_special_tokens), frame the ids: {_shortened(frame)}"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, tuple) and len(value) > 5:
        return f"<{len(value)} strings>"
    return _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
