"""From a declaration to an encoding: reads the files that it names, and trusts none."""

from __future__ import annotations

import tomllib
import zlib
from pathlib import Path
from typing import Any, Final

from bytepair_engine.aliases import ALIASES
from bytepair_engine.backends import BackendName, Core, resolve
from bytepair_engine.building import build_encoding
from bytepair_engine.builtin import BUILTINS, Builtin, builtin_table
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import UnknownEncoding, VocabularyError
from bytepair_engine.gpt2_files import parse_gpt2_files
from bytepair_engine.patterns import resolve_pattern
from bytepair_engine.rank_table import TableFault
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, Resources
from bytepair_engine.spec import EncodingSpec
from bytepair_engine.vocabulary_file import check_sha256, refusal

#: No published rank file is a tenth as large; what is larger, compressed or not, is refused.
MAX_FILE_BYTES: Final = 256 * 2**20


def load_encoding(
    spec: EncodingSpec | str | Path,
    *,
    backend: BackendName | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    threads: int = 0,
) -> Encoding:
    """Load an encoding from its declaration.

    Args:
        spec: The declaration, or the path of a TOML file that holds its keys and `name`.
        backend: "native" or "reference"; None for native where the core is built.
        cache_bytes: See `resources.Resources`.
        threads: See `resources.Resources`.
    Raises:
        InvalidOption: An argument is out of its range, or the core is not built.
        VocabularyError: The declaration or one of its files is not what it must be.
        UnknownEncoding: `extends` names no built-in encoding.
    """
    if not isinstance(spec, EncodingSpec):
        spec = _read_declaration(Path(spec))
    spec.check()
    core, resources = resolve(backend), Resources(cache_bytes, threads)
    if spec.extends is not None:
        return _extend(core, spec, spec.extends, resources)
    # `check` saw to it that both are given.
    file, pattern = Path(spec.file or ""), spec.pattern or ""
    return build_encoding(
        core,
        _read_table(core, spec, file),
        name=spec.name,
        pattern=resolve_pattern(pattern, f"encoding {spec.name!r}"),
        special_tokens=spec.special_tokens,
        source=f"file:{file}",
        table_source=str(file),
        resources=resources,
    )


def find_builtin(name: str) -> tuple[str, Builtin]:
    """The canonical name and the parts of a built-in encoding.

    Raises:
        UnknownEncoding: There is none of that name or alias.
    """
    canonical = ALIASES.get(name, name)
    if canonical not in BUILTINS:
        raise UnknownEncoding(name, sorted(BUILTINS))
    return canonical, BUILTINS[canonical]


def _extend(core: Core, spec: EncodingSpec, base: str, resources: Resources) -> Encoding:
    base_name, builtin = find_builtin(base)
    for token, token_id in spec.special_tokens.items():
        if builtin.special_tokens.get(token, token_id) != token_id:
            raise VocabularyError(
                f"encoding {spec.name!r}",
                f"special token {token!r} has id {builtin.special_tokens[token]} in "
                f"{base_name}, and {token_id} here",
                "remove it from special_tokens, or give the two the same id",
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


def _read_table(core: Core, spec: EncodingSpec, file: Path) -> Any:
    data = _read(file)
    check_sha256(data, spec.sha256, str(file))
    try:
        if spec.encoder_file is None:
            return core.parse_tiktoken(data)
        items = parse_gpt2_files(
            data,
            _read(spec.encoder_file),
            spec.special_tokens,
            merges_source=str(file),
            encoder_source=str(spec.encoder_file),
        )
        return core.from_items(items)
    except TableFault as fault:
        raise refusal(fault, str(file)) from None


def _read_declaration(path: Path) -> EncodingSpec:
    try:
        table = tomllib.loads(_read(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VocabularyError(str(path), f"it is not TOML: {error}", "correct it") from None
    name = table.pop("name", None)
    if not isinstance(name, str) or not name:
        raise VocabularyError(str(path), "name is missing or no string", "add name")
    return EncodingSpec.from_mapping(name, table, path.parent)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if path.suffix == ".gz" and data:
            inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            data = inflate.decompress(data, MAX_FILE_BYTES + 1)
            if not inflate.eof and len(data) <= MAX_FILE_BYTES:
                raise VocabularyError(str(path), "it is cut off", "fetch it again")
    except OSError as error:
        raise VocabularyError(
            str(path), f"it cannot be read: {error.strerror}", "check its name and permissions"
        ) from None
    except zlib.error as error:
        raise VocabularyError(
            str(path), f"it is not gzip: {error}", "correct its name, or fetch it again"
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise VocabularyError(
            str(path),
            f"it holds more than {MAX_FILE_BYTES} bytes",
            "check that this is a vocabulary file",
        )
    return data
