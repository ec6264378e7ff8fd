"""Which special tokens a call may use: those that it requests, within its caller's ceiling.

Only `Policy.permit` decides it: for `allowed_special`, for segments of `special_token`, and for
`add_special_tokens`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, TypedDict

from bytepair.v1 import text_pb2
from bytepair_engine.vocabulary.names import nearest

from bytepair_server.auth.callers import Callers
from bytepair_server.catalog import Catalog, Entry
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import alias_hint
from bytepair_server.config.tables import Ceiling
from bytepair_server.errors import FormatNotPermitted, InvalidField, SpecialTokenNotPermitted

#: In `allowed_special`: every special token of the ceiling. In a ceiling: every special token.
ALL: Final = "ALL"

#: The key of a ceiling, beside encodings, that lists the permitted chat formats.
FORMATS: Final = "formats"

REJECT: Final = text_pb2.DISALLOWED_SPECIAL_REJECT
AS_TEXT: Final = text_pb2.DISALLOWED_SPECIAL_AS_TEXT

_NONE: Final[frozenset[str]] = frozenset()


class SpecialRule(TypedDict):
    """How special tokens in text are treated, as arguments of the engine's functions. Rules are
    shared, and never changed.

    Attributes:
        allowed_special: Special tokens that become control tokens.
        disallowed_special: "all" if any other is an error; empty if any other is ordinary text.
        add_special_tokens: Whether the encoding's template adds tokens around each text.
    """

    allowed_special: frozenset[str]
    disallowed_special: Literal["all"] | frozenset[str]
    add_special_tokens: bool


#: The rules that allow no special token, by whether one in the text is an error.
_RULES: Final[dict[bool, SpecialRule]] = {
    is_error: {
        "allowed_special": _NONE,
        "disallowed_special": "all" if is_error else _NONE,
        "add_special_tokens": False,
    }
    for is_error in (False, True)
}


class Policy:
    """The configured ceilings."""

    def __init__(
        self,
        ceilings: Mapping[str, Ceiling],
        catalog: Catalog,
        callers: Callers,
        floor: Literal["AS_TEXT", "REJECT"] = "AS_TEXT",
    ) -> None:
        """Resolve the setting `ceiling` against the loaded encodings. `floor` is the least strict
        `disallowed_special` of any call.

        Raises:
            ConfigurationError: A ceiling names an unknown encoding, special token or chat format.
        """
        self._callers: Final = callers
        self._always_reject: Final = floor == "REJECT"
        self._ceilings: Final[dict[tuple[str, str], frozenset[str]]] = {}
        permissible = {e.name: frozenset(e.encoding.special_tokens) for e in catalog.entries}
        permissible[FORMATS] = frozenset(catalog.chat_formats)
        for caller, lists in ceilings.items():
            for name, listed in lists.items():
                known = permissible.get(name)
                if known is None and name in catalog.failed:
                    continue  # no request can name it
                if known is None:
                    raise ConfigurationError(
                        f"ceiling.{caller}.{name}: no encoding of this canonical name is loaded; "
                        f"loaded: {', '.join(entry.name for entry in catalog.entries)}"
                        f"{alias_hint(name)}"
                    )
                permitted = known if listed == ALL else frozenset(listed)
                if unknown := sorted(permitted - known):
                    what = "chat formats" if name == FORMATS else "special tokens of this encoding"
                    similar = nearest(unknown[0], known)
                    hint = f"; did you mean {similar[0]}?" if similar else ""
                    raise ConfigurationError(
                        f"ceiling.{caller}.{name}: not {what}: {', '.join(unknown)}{hint}"
                    )
                self._ceilings[caller, name] = permitted

    def ceiling(self, caller: str, name: str) -> frozenset[str]:
        """What a caller may ever use: the special tokens of the encoding `name`, or the chat
        formats if `name` is FORMATS."""
        for rank in self._callers.ranks(caller):
            found = self._ceilings.get((rank, name))
            if found is not None:
                return found
        return _NONE

    def permit(
        self, caller: str, entry: Entry, names: Collection[str], field: str
    ) -> frozenset[str]:
        """Decide which special tokens a call may use.

        Args:
            names: The requested special tokens, which are returned.
            field: The request's field, for the error.
        Raises:
            SpecialTokenNotPermitted: A name is not in the ceiling, or is not a special token.
        """
        ceiling = self.ceiling(caller, entry.name)
        for name in names:
            if name not in ceiling:
                is_token = name in entry.encoding.special_tokens
                raise SpecialTokenNotPermitted(name, entry.name, field, is_token=is_token)
        return frozenset(names)

    def permit_format(self, caller: str, name: str) -> None:
        """Permit a chat format to add its control tokens.

        Raises:
            FormatNotPermitted: The caller's ceiling does not list it.
        """
        if name not in self.ceiling(caller, FORMATS):
            raise FormatNotPermitted(name)

    def rule(
        self,
        caller: str,
        entry: Entry,
        action: int,
        default_action: int,
        allowed: Sequence[str] = (),
        *,
        add_special_tokens: bool = False,
    ) -> SpecialRule:
        """Decide how special tokens in a call's text are treated: by its own action, its RPC's
        default, or REJECT if the configuration requires that.

        Args:
            action: The request's `disallowed_special`.
            default_action: The action if that is unset: REJECT or AS_TEXT.
            allowed: The request's `allowed_special`.
        Raises:
            SpecialTokenNotPermitted: See `permit`.
            InvalidField: `action` is not a value of the enum.
        """
        action = action or default_action
        if action not in (REJECT, AS_TEXT):
            values = ", ".join(text_pb2.DisallowedSpecial.keys()[1:])
            raise InvalidField("disallowed_special", f"must be one of {values}")
        rule = _RULES[action == REJECT or self._always_reject]
        if add_special_tokens:
            self.permit(caller, entry, entry.encoding.template_names, "add_special_tokens")
            rule = {**rule, "add_special_tokens": True}
        if not allowed:
            return rule
        names = self.ceiling(caller, entry.name) if list(allowed) == [ALL] else allowed
        permitted = self.permit(caller, entry, names, "allowed_special")
        return {**rule, "allowed_special": permitted}
