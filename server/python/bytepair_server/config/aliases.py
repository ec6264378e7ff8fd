"""Other names of encodings: the published ones of models, and those that the operator adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bytepair_engine import aliases, list_encodings
from bytepair_engine.vocabulary.names import STAR, tie

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings, alias_hint

#: Maximum aliases, and characters of each: an unknown name is compared with all of them.
MAX_ALIASES: Final = 256
MAX_CHARACTERS: Final = 128
#: The remedy if a name is taken.
_REMEDY: Final = "choose another name, or leave that one out of builtin_encodings"


def aliases_of(settings: Settings) -> dict[str, str]:
    """Every alias and pattern, and the canonical name that it stands for.

    The published names of a built-in encoding stay in the table even if it is not loaded, so that
    no shorter pattern gives them to another encoding. The operator may use them.

    Raises:
        ConfigurationError: An alias is not a name, stands for two encodings or for none, or is the
            canonical name of another one; an encoding has the canonical name or an alias of
            another; a pattern matches every name; or two of the operator's patterns match the same
            name and neither is longer.
    """
    served = {*settings.builtin_encodings, *settings.encodings}
    canonical = {*list_encodings(), *settings.encodings}
    published = aliases()
    for name in settings.encodings:
        if name in settings.builtin_encodings:
            raise ConfigurationError(f"encodings.{name}: {name!r} is built in; {_REMEDY}")
        if published.get(name) in served:
            raise ConfigurationError(
                f"encodings.{name}: {name!r} already names {published[name]}; {_REMEDY}"
            )
    own: dict[str, str] = {}
    for setting, alias, name in _own(settings):
        if not alias.isprintable() or " " in alias or not 0 < len(alias) <= MAX_CHARACTERS:
            raise ConfigurationError(
                f"{setting}: {alias[:MAX_CHARACTERS]!r} must be 1 to {MAX_CHARACTERS} printable "
                "characters without spaces"
            )
        if not alias.strip(STAR):
            raise ConfigurationError(
                f"{setting}: {alias!r} matches every name, and an unknown one must be an error; "
                "begin it with what the names have in common"
            )
        if name not in served:
            raise ConfigurationError(
                f"{setting}: no encoding of the canonical name {name!r} is configured; "
                f"configured: {', '.join(sorted(served))}{alias_hint(name)}"
            )
        owner = own.setdefault(alias, name)
        if alias in canonical:
            owner = alias
        elif published.get(alias) in served:
            owner = published[alias]
        if owner != name:
            raise ConfigurationError(f"{setting}: {alias!r} already names {owner}; {_REMEDY}")
    if len(own) > MAX_ALIASES:
        raise ConfigurationError(
            f"aliases: {len(own)} names exceed the maximum of {MAX_ALIASES}; use patterns"
        )
    tied = tie(own)
    if tied is not None:
        one, other = tied
        raise ConfigurationError(
            f"aliases: {one!r} ({own[one]}) and {other!r} ({own[other]}) match the same names, "
            "and neither is longer; lengthen one of them, or list the names themselves"
        )
    # Of an own pattern and a published one of the same length, the own one counts.
    return {**own, **{alias: name for alias, name in published.items() if alias not in own}}


def _own(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The operator's aliases: the setting that holds it, the alias, the canonical name."""
    for name, table in settings.encodings.items():
        # Whatever else this key may hold is rejected when the encoding is loaded.
        listed = table.get("aliases", ())
        for alias in listed if isinstance(listed, list | tuple) else ():
            if isinstance(alias, str):
                yield f"encodings.{name}", alias, name
    for alias, name in settings.aliases.items():
        yield "aliases", alias, name
