"""Load an encoding from its declaration, and verify its files."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

from bytepair_engine import collector
from bytepair_engine.backends.cores import BackendName, Core, resolve
from bytepair_engine.building import build_encoding, build_pipeline_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import UnknownEncoding, VocabularyError, check_type, wrong_type
from bytepair_engine.formats.ranked import Ranked
from bytepair_engine.formats.reading import Opened, open_vocabulary, read_vocabulary
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, Resources
from bytepair_engine.spec import EncodingSpec
from bytepair_engine.vocabulary.aliases import MODEL_NAMES, MODELS
from bytepair_engine.vocabulary.builtin import BUILTINS, Builtin, builtin_table
from bytepair_engine.vocabulary.file import read_vocabulary_file
from bytepair_engine.vocabulary.names import nearest

#: A larger TOML file is rejected: the cost of parsing can grow with the square of its size.
MAX_DECLARATION_BYTES: Final = 2**20


def load_encoding(
    spec: EncodingSpec | str | Path,
    *,
    backend: BackendName | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    threads: int = 0,
) -> Encoding:
    """Load an encoding from its declaration, or from a self-describing vocabulary file.

    Args:
        spec: The declaration; or the path of a file `*.toml` with its keys and `name`, or with one
            table `[encodings.NAME]`; or the path of a tokenizer.json, a SentencePiece model or a
            Tekken file, which names the encoding ("tokenizer" for tokenizer.json). Their format is
            detected from the content.
        backend: "native" or "reference"; None for native if the core is built, else reference.
        cache_bytes: See `resources.Resources`.
        threads: See `resources.Resources`.
    Raises:
        InvalidOption: An argument is out of range, or the core is not built.
        VocabularyError: The declaration or one of its files is invalid; or `spec` is the path of a
            rank file, which does not contain its pattern and so needs a declaration.
        UnknownEncoding: `extends` is not the name of a built-in encoding.
    """
    if not isinstance(spec, EncodingSpec):
        check_type("spec", spec, str | os.PathLike, "an EncodingSpec or a path")
        path = Path(spec)
        spec, *others = declarations(path)
        if others:
            problem = f"it declares {len(others) + 1} encodings"
            raise VocabularyError(str(path), problem, "use a file with a single one")
    spec.check()
    core, resources = resolve(backend), Resources(cache_bytes, threads)
    if spec.extends is not None:
        return _verified(spec, _extend(core, spec, resources))
    with collector.paused():
        return load_opened(core, spec, open_vocabulary(spec), resources)


def load_opened(core: Core, spec: EncodingSpec, opened: Opened, resources: Resources) -> Encoding:
    """Load an encoding from a declaration whose file is already read; see `load_encoding`."""
    vocabulary = read_vocabulary(core, spec, opened)
    source = f"file:{spec.file}"
    if not isinstance(vocabulary, Ranked):
        encoding = build_pipeline_encoding(
            core, vocabulary, name=spec.name, source=source, resources=resources
        )
    else:
        encoding = build_encoding(
            core,
            vocabulary.table,
            name=spec.name,
            pattern=vocabulary.pattern,
            special_tokens=vocabulary.special_tokens,
            source=source,
            table_source=str(spec.file),
            resources=resources,
            template=vocabulary.template,
        )
    return _verified(spec, encoding)


def _verified(spec: EncodingSpec, encoding: Encoding) -> Encoding:
    if spec.fingerprint is not None and spec.fingerprint.lower() != encoding.fingerprint:
        files = [str(file) for file in (spec.file, spec.encoder_file) if file is not None]
        raise VocabularyError(
            ", ".join([f"encoding {spec.name!r}", *files]),
            f"its fingerprint is {encoding.fingerprint}, and {spec.fingerprint} was expected",
            "restore the original file and declaration, or update fingerprint if the change is "
            "intended",
        )
    return encoding


def find_builtin(name: str) -> tuple[str, Builtin]:
    """Find a built-in encoding by its name or by a model name.

    Returns:
        The canonical name and the definition.
    Raises:
        UnknownEncoding: No built-in encoding, alias or pattern matches `name`.
        TypeError: `name` is not a string.
    """
    if not isinstance(name, str):
        raise wrong_type("name", "str", name)
    canonical = name if name in BUILTINS else MODEL_NAMES.find(name)
    if canonical is None:
        raise UnknownEncoding(name, sorted(BUILTINS), nearest(name, (*BUILTINS, *MODELS)))
    return canonical, BUILTINS[canonical]


def _extend(core: Core, spec: EncodingSpec, resources: Resources) -> Encoding:
    base_name, builtin = find_builtin(spec.extends or "")
    names = {token_id: token for token, token_id in builtin.special_tokens.items()}
    for token, token_id in spec.special_tokens.items():
        if names.setdefault(token_id, token) != token and token not in builtin.special_tokens:
            # Permission to use one of the two would include the other.
            raise VocabularyError(
                f"encoding {spec.name!r}",
                f"special token {token!r} has id {token_id}, which {names[token_id]!r} has",
                "give it an unused id",
            )
        if builtin.special_tokens.get(token, token_id) != token_id:
            raise VocabularyError(
                f"encoding {spec.name!r}",
                f"special token {token!r} has id {builtin.special_tokens[token]} in "
                f"{base_name}, and {token_id} here",
                "remove it from special_tokens, or give it the same id",
            )
    return build_encoding(
        core,
        builtin_table(core, builtin.table),
        name=spec.name,
        pattern=builtin.pattern,
        special_tokens={**builtin.special_tokens, **spec.special_tokens},
        source=f"builtin:{base_name}",
        table_source=base_name,
        resources=resources,
    )


def declarations(path: Path) -> list[EncodingSpec]:
    """Read the declarations of a file `*.toml`: its tables `[encodings.NAME]`, or the single one
    that it is. For any other file, create one.

    Raises:
        VocabularyError: The file or a declaration is invalid, or it declares nothing.
    """
    if str(path) in {*BUILTINS, *MODELS} and not path.exists():
        raise VocabularyError(
            str(path), "there is no such file", f"use get_encoding({str(path)!r})"
        )
    data = read_vocabulary_file(path)
    if path.suffix != ".toml":
        return [EncodingSpec(name=path.stem, file=path)]
    if len(data) > MAX_DECLARATION_BYTES:
        problem = f"it holds more than {MAX_DECLARATION_BYTES} bytes"
        raise VocabularyError(str(path), problem, "check that this is a declaration")
    if not data:  # which is valid TOML
        raise VocabularyError(str(path), "the file is empty", "fetch it again: it was cut off")
    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # too many digits, too deeply nested
        raise VocabularyError(str(path), f"it is not TOML: {error}", "correct it") from None
    if "encodings" in table:
        tables = table["encodings"]
        if not isinstance(tables, dict) or not all(isinstance(it, dict) for it in tables.values()):
            raise VocabularyError(str(path), "encodings has no tables", "add [encodings.NAME]")
        if not tables:
            raise VocabularyError(str(path), "it declares no encoding", "add [encodings.NAME]")
        if "name" in table:
            raise VocabularyError(str(path), "it has both name and encodings", "remove one")
        return [EncodingSpec.from_mapping(*each, path.parent) for each in tables.items()]
    name = table.pop("name", None)
    if not isinstance(name, str) or not name:
        raise VocabularyError(str(path), "name is missing or not a string", "add name")
    return [EncodingSpec.from_mapping(name, table, path.parent)]
