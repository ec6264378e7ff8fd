"""Build an encoding from a rank table, a pattern and special tokens, or from a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bytepair_engine.backends.cores import Core
from bytepair_engine.backends.interface import Backend
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import VocabularyError, check_type, has_surrogate
from bytepair_engine.pipeline.definition import NO_TEMPLATE, Pipeline, Split, Template
from bytepair_engine.resources import Resources
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID
from bytepair_engine.vocabulary.special_sets import SpecialSets


def build_encoding(
    core: Core,
    table: Any,
    *,
    name: str,
    pattern: str,
    special_tokens: Mapping[str, int],
    source: str,
    table_source: str,
    resources: Resources,
    template: Template = NO_TEMPLATE,
) -> Encoding:
    """Build an encoding.

    Args:
        core: The backend that made `table`.
        table: The ordinary tokens.
        name: The encoding's name.
        pattern: The split pattern, resolved.
        special_tokens: Spelling to id.
        source: The encoding's `source`.
        table_source: The source that errors in the table name.
        resources: Limits of memory and threads.
        template: The ids that `add_special_tokens` puts around a text; each is that of a token.
    Raises:
        VocabularyError: A single byte is not a token, or a special token is empty, out of range,
            holds a lone surrogate or has the id of an ordinary one.
    """
    missing = table.missing_byte()
    if missing is not None:
        raise VocabularyError(
            table_source,
            f"the single byte 0x{missing:02x} is not a token, so some text has no encoding",
            "fetch the original file: a byte-level vocabulary has all 256",
        )
    for token, token_id in special_tokens.items():
        check_type("special_tokens: each name", token, str, "str")
        problem = None
        if has_surrogate(token):
            problem = f"special token {token!r} holds a lone surrogate"
        elif not token:
            problem = f"the special token of id {token_id} is empty"
        elif not 0 <= token_id <= MAX_TOKEN_ID:
            problem = f"special token {token!r} has id {token_id}, outside 0 to {MAX_TOKEN_ID}"
        elif table.has_id(token_id):
            problem = f"special token {token!r} has id {token_id}, which an ordinary token has"
        if problem:
            raise VocabularyError(f"encoding {name!r}", problem, "correct special_tokens")
    backend = core.build(table, pattern, dict(special_tokens), resources)
    return Encoding(
        name=name,
        source=source,
        pattern=pattern,
        special_tokens=MappingProxyType(dict(special_tokens)),
        max_token_id=max([table.max_id(), *special_tokens.values()]),
        resources=resources,
        _backend=backend,
        _special_sets=SpecialSets(backend, special_tokens),
        _special_ids=frozenset(special_tokens.values()),
        template=template,
        template_names=_names(backend, special_tokens, template),
    )


def build_pipeline_encoding(
    core: Core, pipeline: Pipeline, *, name: str, source: str, resources: Resources
) -> Encoding:
    """Build the encoding of a pipeline.

    Args:
        core: The backend.
        pipeline: The pipeline, from a loader.
        name: The encoding's name.
        source: The encoding's `source`.
        resources: Limits of memory and threads.
    Raises:
        VocabularyError: A pattern cannot run in bounded time, or the ids of ordinary text depend
            on a special token (see `pipeline.text_model`).
    """
    try:
        backend = core.build_pipeline(pipeline, resources)
    except VocabularyError as fault:
        # A backend does not know the file: add its name.
        where, problem = source.removeprefix("file:"), f"{fault.source}: {fault.problem}"
        raise VocabularyError(where, problem, fault.remedy) from None
    special = {token.name: token.id for token in pipeline.added if token.special}
    return Encoding(
        name=name,
        source=source,
        pattern="\n".join(s.pattern for s in pipeline.pre_tokenizers if isinstance(s, Split)),
        special_tokens=MappingProxyType(special),
        max_token_id=max(pipeline.decoder.middle),
        resources=resources,
        _backend=backend,
        _special_sets=SpecialSets(backend, special),
        _special_ids=frozenset(special.values()),
        pipeline=pipeline,
        template=pipeline.template,
        template_names=_names(backend, special, pipeline.template),
    )


def _names(
    backend: Backend[Any], special_tokens: Mapping[str, int], template: Template
) -> tuple[str, ...]:
    names = {token_id: name for name, token_id in special_tokens.items()}
    return tuple(
        names.get(i) or (backend.token_bytes(i) or b"").decode(errors="replace")
        for i in template.around(())
    )
