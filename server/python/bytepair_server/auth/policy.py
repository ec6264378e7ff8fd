"""Which special tokens a call may use: those that it requests, within its caller's ceiling.

`Policy.permit` is the one place where that is decided. Whatever names special tokens,
`allowed_special`, `special_token` segments and `add_special_tokens` alike, goes through it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from bytepair.v1 import text_pb2

from bytepair_server.auth.callers import Callers
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.callers import Ceiling
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.errors import FormatNotPermitted, InvalidField, SpecialTokenNotPermitted

#: In `allowed_special` and in the configured ceiling: every special token (within the ceiling).
ALL: Final = "ALL"

#: In a ceiling, beside encodings: the chat formats that may be encoded.
FORMATS: Final = "formats"

REJECT: Final = text_pb2.DISALLOWED_SPECIAL_REJECT
AS_TEXT: Final = text_pb2.DISALLOWED_SPECIAL_AS_TEXT

_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class SpecialRule:
    """How special tokens in text are treated, in the engine's terms.

    Attributes:
        allowed: These become control tokens.
        disallowed: "all": any other is an error; empty: any other is ordinary text.
        add_special_tokens: Whether the tokens of the encoding's template come around each text.
    """

    allowed: frozenset[str]
    disallowed: Literal["all"] | frozenset[str]
    add_special_tokens: bool = False

    def for_segments(self) -> SpecialRule:
        """The rule for the text of segments, where nothing ever becomes a control token."""
        return _RULES[self.disallowed == "all"]


#: The rules that allow nothing, by whether special tokens in the text are an error.
_RULES: Final = {True: SpecialRule(_NONE, "all"), False: SpecialRule(_NONE, _NONE)}


class Policy:
    """The ceilings that are configured."""

    def __init__(
        self,
        ceilings: Mapping[str, Ceiling],
        catalog: Catalog,
        callers: Callers,
        floor: Literal["AS_TEXT", "REJECT"] = "AS_TEXT",
    ) -> None:
        """Resolve the setting `ceiling` against what is loaded.

        Args:
            ceilings: Special tokens by caller or group, and encoding.
            catalog: What is loaded.
            callers: The callers and their groups.
            floor: The least strict action that a call gets.
        Raises:
            ConfigurationError: It names an encoding or a special token that does not exist.
        """
        self._callers: Final = callers
        self._always_reject: Final = floor == "REJECT"
        self._ceilings: Final[dict[tuple[str, str], frozenset[str]]] = {}
        self._formats: Final[dict[str, frozenset[str]]] = {}
        for caller, encodings in ceilings.items():
            for name, tokens in encodings.items():
                if name == FORMATS:
                    self._formats[caller] = _known_formats(caller, tokens, catalog)
                    continue
                entry = next((e for e in catalog.entries if e.name == name), None)
                if entry is None and name in catalog.failed:
                    continue  # no request can name it
                if entry is None:
                    raise ConfigurationError(
                        f"ceiling.{caller}.{name}: no encoding of this canonical name is loaded; "
                        f"loaded: {', '.join(e.name for e in catalog.entries)}"
                    )
                special = frozenset(entry.encoding.special_tokens)
                wanted = special if tokens == ALL else frozenset(tokens)
                if not wanted <= special:
                    raise ConfigurationError(
                        f"ceiling.{caller}.{name}: not special tokens of this encoding: "
                        f"{', '.join(sorted(wanted - special))}"
                    )
                self._ceilings[caller, name] = wanted

    def ceiling(self, caller: str, entry: Entry) -> frozenset[str]:
        """The special tokens of an encoding that a caller may ever use."""
        for name in self._callers.ranks(caller):
            found = self._ceilings.get((name, entry.name))
            if found is not None:
                return found
        return _NONE

    def permit(
        self, caller: str, entry: Entry, names: Collection[str], field: str
    ) -> frozenset[str]:
        """Decide which special tokens a call may use.

        Args:
            caller: Who calls.
            entry: The encoding.
            names: The special tokens that the call asks for.
            field: Where it asks, for the error.
        Returns:
            `names`, all of them within the ceiling.
        Raises:
            SpecialTokenNotPermitted: A name is beyond the ceiling, or no special token.
        """
        ceiling = self.ceiling(caller, entry)
        for name in names:
            if name not in ceiling:
                is_token = name in entry.encoding.special_tokens
                raise SpecialTokenNotPermitted(name, entry.name, field, is_token=is_token)
        return frozenset(names)

    def permit_format(self, caller: str, name: str) -> None:
        """Let a chat format put its control tokens where structure says.

        Raises:
            FormatNotPermitted: The caller's ceiling does not name it.
        """
        for rank in self._callers.ranks(caller):
            found = self._formats.get(rank)
            if found is not None:
                if name in found:
                    return
                break
        raise FormatNotPermitted(name)

    def rule(
        self,
        caller: str,
        entry: Entry,
        allowed: Sequence[str],
        action: int,
        default_action: int,
        *,
        add_special_tokens: bool,
    ) -> SpecialRule:
        """Decide what becomes of special tokens in a call's text: what it says, its RPC's
        default, or REJECT where the operator wants that always.

        Args:
            caller: Who calls.
            entry: The encoding.
            allowed: The request's `allowed_special`.
            action: The request's `disallowed_special`.
            default_action: What that is if unset: REJECT or AS_TEXT.
            add_special_tokens: The request's.
        Raises:
            SpecialTokenNotPermitted: See `permit`.
            InvalidField: `action` is no value of the enum.
        """
        action = action or default_action
        if action not in (REJECT, AS_TEXT):
            raise InvalidField("disallowed_special", f"unknown value {action}")
        rule = _RULES[action == REJECT or self._always_reject]
        if add_special_tokens:
            self.permit(caller, entry, entry.encoding.template_names, "add_special_tokens")
            rule = replace(rule, add_special_tokens=True)
        if not allowed:
            return rule
        names = self.ceiling(caller, entry) if list(allowed) == [ALL] else allowed
        return replace(rule, allowed=self.permit(caller, entry, names, "allowed_special"))


def _known_formats(
    caller: str, formats: Literal["ALL"] | tuple[str, ...], catalog: Catalog
) -> frozenset[str]:
    known = frozenset(catalog.chat_formats)
    wanted = known if formats == ALL else frozenset(formats)
    if not wanted <= known:
        raise ConfigurationError(
            f"ceiling.{caller}.{FORMATS}: not chat formats: {', '.join(sorted(wanted - known))}; "
            f"known: {', '.join(sorted(known))}"
        )
    return wanted
