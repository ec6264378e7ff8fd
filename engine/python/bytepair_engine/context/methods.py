"""The methods of `Encoding` for text that must fit a number of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bytepair_engine.vocabulary.special_sets import SpecialTokens

# These are built on `Encoding`: they are imported when they are called.
if TYPE_CHECKING:
    from bytepair_engine.context.boundaries import Level
    from bytepair_engine.context.inspecting import Inspection
    from bytepair_engine.context.splitting import Chunk
    from bytepair_engine.context.truncating import Keep
    from bytepair_engine.encoding import Encoding


class ContextMethods:
    """Truncate, split and inspect."""

    __slots__ = ()

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        keep: Keep = "start",
        level: Level = "grapheme",
        marker: str = "",
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = frozenset(),
        add_special_tokens: bool = False,
    ) -> str:
        """Cut a text to at most `max_tokens` tokens, as `count` counts them in what is left.

        `context.truncating.truncated` has the arguments, the errors, and the same with the count
        and the ranges that are kept.

        >>> from bytepair_engine import get_encoding
        >>> get_encoding("cl100k_base").truncate("hello 🧠", 2)
        'hello '
        """
        from bytepair_engine.context.truncating import truncated

        return truncated(
            cast("Encoding", self),
            text,
            max_tokens,
            keep=keep,
            level=level,
            marker=marker,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            add_special_tokens=add_special_tokens,
        ).text

    def split(
        self,
        text: str,
        max_tokens: int,
        *,
        overlap_tokens: int = 0,
        level: Level = "paragraph",
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = frozenset(),
        add_special_tokens: bool = False,
    ) -> list[Chunk]:
        """Split a text into chunks of at most `max_tokens` tokens, as `count` counts each.

        `context.splitting` has the rule, the arguments and the errors; `context.stream` does the
        same for text that arrives in pieces.

        Returns:
            Chunks with their text, count and place; [] for "".
        """
        from bytepair_engine.context import splitting

        options = splitting.SplitOptions(
            max_tokens,
            overlap_tokens,
            level,
            allowed_special=allowed_special,
            add_special_tokens=add_special_tokens,
        )
        return list(
            splitting.split(
                cast("Encoding", self), text, options, disallowed_special=disallowed_special
            )
        )

    def inspect(self, text: str) -> Inspection:
        """Find what makes a count surprising: see `context.inspecting.inspect`."""
        from bytepair_engine.context.inspecting import inspect

        return inspect(cast("Encoding", self), text)
