"""The loaded encodings and chat formats, each encoding verified before it is served."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bytepair_engine import (
    Encoding,
    EncodingSpec,
    UnknownEncoding,
    VocabularyError,
    get_encoding,
    load_encoding,
)
from bytepair_engine.chat import (
    BadTemplate,
    ChatFormat,
    UnknownChatFormat,
    get_chat_format,
    list_chat_formats,
)
from bytepair_engine.vocabulary.names import Names, nearest

from bytepair_server.config.aliases import aliases_of
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.config.tables import ChatFormatTable
from bytepair_server.errors import EncodingNotLoaded, FingerprintMismatch

#: The text of the self-test: several scripts, digits, whitespace runs, an emoji.
SELF_TEST_TEXT: Final = "Hello  world, 1234567 naïve cafés!\n\n\t日本語 🙂 don't\r\n"

#: Its ids by the published tokenizers; the suite compares them with tiktoken's.
# fmt: off
_GPT2_IDS: Final = (
    15496, 220, 995, 11, 17031, 2231, 3134, 41492, 19945, 20954, 0, 628, 197, 33768, 98, 17312,
    105, 45739, 252, 32485, 836, 470, 201, 198,
)
_CL100K_IDS: Final = (
    9906, 220, 1917, 11, 220, 4513, 10961, 22, 95980, 588, 30203, 5512, 2268, 197, 9080, 22656,
    45918, 252, 28584, 1541, 956, 319,
)
_O200K_IDS: Final = (
    13225, 220, 2375, 11, 220, 7633, 19354, 22, 153475, 737, 126753, 1703, 197, 9048, 40909,
    26192, 4128, 370,
)
# fmt: on
SELF_TEST_IDS: Final[Mapping[str, tuple[int, ...]]] = {
    "r50k_base": _GPT2_IDS,
    "p50k_base": _GPT2_IDS,
    "p50k_edit": _GPT2_IDS,
    "cl100k_base": _CL100K_IDS,
    "o200k_base": _O200K_IDS,
    "o200k_harmony": _O200K_IDS,
}


class SelfTestFailed(Exception):
    """A loaded encoding failed its self-test."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A served encoding.

    Attributes:
        encoding: The engine's object.
        name: Its canonical name.
        fingerprint: Its fingerprint.
        aliases: Its other names and patterns of names, sorted.
        is_pinned: Whether a replaced vocabulary file would be rejected.
    """

    encoding: Encoding
    name: str
    fingerprint: str
    aliases: tuple[str, ...]
    is_pinned: bool = True


class Catalog:
    """The served encodings. Immutable.

    Attributes:
        entries: The encodings, sorted by name.
        failed: Configured encodings that are not served, with the reason.
        chat_formats: The served chat formats, by name.
    """

    def __init__(
        self,
        entries: list[Entry],
        failed: Mapping[str, str],
        aliases: Mapping[str, str],
        formats: Mapping[str, ChatFormat],
    ) -> None:
        """Index encodings. `aliases` has canonical names by alias and pattern. An alias of an
        encoding that is not served is unknown, even if another pattern matches it."""
        self.failed: Final = failed
        self.chat_formats: Final = dict(sorted(formats.items()))
        self.entries: Final = tuple(sorted(entries, key=lambda entry: entry.name))
        self._by_name: Final = {entry.name: entry for entry in self.entries}
        self._aliases: Final = Names(aliases)
        served = (name for name in aliases if aliases[name] in self._by_name and "*" not in name)
        self._known: Final = tuple(sorted({*self._by_name, *served}))

    def get(self, name: str, expected_fingerprint: str = "") -> Entry:
        """Look up an encoding.

        Args:
            name: A canonical name, an alias, or a name that a pattern matches.
            expected_fingerprint: The required fingerprint; "" for any.
        Raises:
            UnknownEncoding: No encoding has this name.
            EncodingNotLoaded: The encoding is one of `failed`.
            FingerprintMismatch: The encoding has another fingerprint.
        """
        # A pattern must not give the name of an encoding that could not be loaded to another one.
        meant = name if name in self.failed else self._aliases.find(name) or ""
        entry = self._by_name.get(name) or self._by_name.get(meant)
        if entry is None:
            kind = EncodingNotLoaded if meant in self.failed else UnknownEncoding
            raise kind(name, self._known, nearest(name, self._known))
        if expected_fingerprint and expected_fingerprint != entry.fingerprint:
            raise FingerprintMismatch(entry.name, expected_fingerprint, entry.fingerprint)
        return entry

    def chat_format(self, name: str) -> ChatFormat:
        """Look up a chat format.

        Raises:
            UnknownChatFormat: No chat format has this name.
        """
        try:
            return self.chat_formats[name]
        except KeyError:
            raise UnknownChatFormat(name, tuple(self.chat_formats)) from None

    @property
    def readiness(self) -> str:
        """The text of `/readyz` once the server serves."""
        return f"ready, without {', '.join(sorted(self.failed))}" if self.failed else "ready"

    @property
    def unpinned(self) -> Mapping[str, str]:
        """For each encoding that is not pinned, the line of configuration that pins it."""
        return {
            entry.name: f'fingerprint = "{entry.fingerprint}"'
            for entry in self.entries
            if not entry.is_pinned
        }

    @property
    def all_native(self) -> bool:
        """Whether every encoding runs on the compiled core."""
        return all(entry.encoding.backend == "native" for entry in self.entries)


def load(settings: Settings, base_dir: Path) -> Catalog:
    """Load and test every configured encoding. Takes seconds: not for the event loop.

    Relative paths of declarations start from `base_dir`.

    Raises:
        ConfigurationError: A declaration or its file is invalid, names clash, or the compiled
            core is missing and `allow_reference_backend` is off. With
            `serve_without_bad_encodings`, an invalid declaration or file is an error only if no
            encoding is left.
        SelfTestFailed: An encoding failed its self-test; likewise.
    """
    if not settings.builtin_encodings and not settings.encodings:
        raise ConfigurationError("builtin_encodings: no encoding is configured; name at least one")
    aliases = aliases_of(settings)
    entries: list[Entry] = []
    failed: dict[str, str] = {}
    for name in dict.fromkeys((*settings.builtin_encodings, *settings.encodings)):
        other_names = [alias for alias, meant in aliases.items() if meant == name]
        try:
            entries.append(_entry(name, other_names, settings, base_dir))
        except (ConfigurationError, SelfTestFailed) as error:
            if not settings.serve_without_bad_encodings:
                raise
            failed[name] = str(error)
    if not entries:
        raise ConfigurationError("no encoding can be served: " + "; ".join(failed.values()))
    configured = {entry.name for entry in entries} | failed.keys()
    formats = _chat_formats(settings, base_dir, configured)
    catalog = Catalog(entries, failed, aliases, formats)
    if not catalog.all_native and not settings.allow_reference_backend:
        raise ConfigurationError(
            f"allow_reference_backend (off): the engine's compiled core cannot be loaded"
            f"{_core_fault()}, and the pure-Python one is about a hundred times slower; install a "
            "bytepair-engine wheel for this machine, or set allow_reference_backend to serve "
            "without it"
        )
    return catalog


def _core_fault() -> str:
    """Why the compiled core cannot be loaded, in brackets: it is missing, or for other machines."""
    try:
        import_module("bytepair_engine._core")
    except ImportError as error:
        return f" ({error})"
    return ""


def _entry(name: str, other_names: list[str], settings: Settings, base_dir: Path) -> Entry:
    """Load an encoding: a declared one, or else a built-in one."""
    table = settings.encodings.get(name)
    cache_bytes, threads = settings.cache_bytes, settings.threads_per_call
    try:
        if table is None:
            encoding = get_encoding(name, cache_bytes=cache_bytes, threads=threads)
            return verified(encoding, other_names)
        spec = EncodingSpec.from_mapping(name, table, base_dir)
        encoding = load_encoding(spec, cache_bytes=cache_bytes, threads=threads)
        return replace(verified(encoding, other_names), is_pinned=_is_pinned(spec))
    except (VocabularyError, UnknownEncoding) as error:
        setting = f"builtin_encodings: {name}" if table is None else f"encodings.{name}"
        said = str(error).removeprefix(f"encoding {name!r}: ")  # the setting names it
        raise ConfigurationError(f"{setting}: {said}") from error


def _is_pinned(spec: EncodingSpec) -> bool:
    if spec.file is None or spec.fingerprint is not None:
        return True
    return spec.sha256 is not None and spec.encoder_file is None  # sha256 does not cover the latter


def verified(encoding: Encoding, other_names: list[str]) -> Entry:
    """Self-test an encoding. Returns its entry, with `other_names` as aliases.

    Raises:
        SelfTestFailed: The ids differ from the published ones of a built-in encoding, the text
            does not round-trip, or its count is wrong.
    """
    ids = encoding.encode_ordinary(SELF_TEST_TEXT)
    if encoding.source == "builtin" and tuple(ids) != SELF_TEST_IDS[encoding.name]:
        raise SelfTestFailed(
            f"{encoding.name}: the self-test's text has the wrong ids; reinstall bytepair-engine"
        )
    # With replacement, because the lost part may be half of a character.
    if encoding.decode(ids) != SELF_TEST_TEXT:
        raise SelfTestFailed(
            f"{encoding.name}: the self-test's text does not round-trip: the vocabulary has no "
            "token for a part of it, or changes it; leave this encoding out, or set "
            "serve_without_bad_encodings"
        )
    if encoding.count(SELF_TEST_TEXT, disallowed_special=()) != len(ids):
        raise SelfTestFailed(
            f"{encoding.name}: the self-test's text is counted wrongly; reinstall bytepair-engine"
        )
    return Entry(encoding, encoding.name, encoding.fingerprint, tuple(sorted(other_names)))


def _chat_formats(
    settings: Settings, base_dir: Path, encodings: Collection[str]
) -> dict[str, ChatFormat]:
    """The chat formats by name, for encodings of these canonical names.

    Raises:
        ConfigurationError: A table or its file is invalid, or names clash.
    """
    found: dict[str, ChatFormat] = {name: get_chat_format(name) for name in list_chat_formats()}
    for table in settings.chat_formats:
        setting = f"chat_formats.{table.name}"
        if table.name in found:
            raise ConfigurationError(f"{setting}: a chat format already has this name; rename it")
        unknown = [name for name in table.encodings if name not in encodings]
        if unknown:
            raise ConfigurationError(
                f"{setting}: encodings: no encoding of this canonical name is loaded: {unknown[0]}"
            )
        found[table.name] = _chat_format(setting, table, base_dir)
    return found


def _chat_format(setting: str, table: ChatFormatTable, base_dir: Path) -> ChatFormat:
    from bytepair_engine.chat.templates import load_template  # imports Jinja2, which few need

    path = base_dir / table.file
    given: Mapping[str, Any] = table.model_dump(exclude={"name", "file"})
    try:
        return load_template(table.name, path, **given)
    except BadTemplate as error:
        line = "" if error.line is None else f", line {error.line} of the template"
        raise ConfigurationError(f"{setting}: {path}{line}: {error.fault}") from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a NUL
        reason = getattr(error, "strerror", None) or "no such path"
        raise ConfigurationError(f"{setting}: {path}: cannot be read: {reason}") from None
