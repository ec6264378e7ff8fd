"""Describe vocabulary files, to check them before use."""

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

#: Maximum number of characters of a value, such as a regular expression, in a step.
_MAX_VALUE_LENGTH: Final = 200


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The description of a vocabulary file.

    Attributes:
        file: The path.
        format: The format, detected from the content.
        sha256: Hash of the file, uncompressed: 64 hexadecimal digits.
        official: The built-in encodings with the same table.
        spec: The declaration that was inspected.
        encoding: The loaded encoding; None if the declaration is incomplete.
        missing: The keys that must be added to the declaration, in words; "" if it is complete.
        known_pattern: The name of the pattern of a published rank file; None for any other file.
        steps: The processing steps of text, one line each; () if `encoding` is None.
        always_found: Added tokens that are not special in the file: they are recognised in every
            text, even if `allowed_special` is empty.
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
        """Whether text can be streamed into the encoding."""
        return self.encoding is not None and can_stream(self.encoding)


def inspect_file(spec: EncodingSpec) -> Inspection:
    """Detect the format of a declaration's file and describe its content.

    Args:
        spec: The declaration. It needs a name and `file`; a rank file also needs `pattern`,
            `encoder_file` or `special_tokens`, which it does not contain.
    Raises:
        VocabularyError: The file is not a vocabulary, or cannot be encoded with exactly.
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
    needed = []
    if format_ in ("tiktoken", "gpt2") and spec.pattern is None:
        needed.append(
            "pattern: this file does not contain one, and a wrong one gives wrong ids; "
            + proposed_pattern(data)
        )
    if format_ == "gpt2" and spec.encoder_file is None:
        needed.append("encoder_file: vocab.json (or encoder.json), which holds the ids")
    return "; ".join(needed)


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
        yield "decode by the position in the sequence: tokens at the start or the end lose a space"


def _template_steps(encoding: Encoding) -> Iterator[str]:
    before = len(encoding.template.before)
    names = encoding.template_names
    if names:
        frame = " ".join([*names[:before], "…", *names[before:]])
        yield f"with add_special_tokens, add the template's ids: {_shortened(frame)}"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, tuple) and len(value) > 5:
        return f"<{len(value)} strings>"
    return _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"
