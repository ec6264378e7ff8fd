"""The methods of `Encoding` for text that must fit a token budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bytepair_engine.vocabulary.special_sets import SpecialTokens

# These modules import `Encoding`, so the methods import them when called.
if TYPE_CHECKING:
    from bytepair_engine.context.boundaries import Level
    from bytepair_engine.context.inspecting import Inspection
    from bytepair_engine.context.splitting import Chunk
    from bytepair_engine.context.truncation_search import Keep
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
        """Cut a text to at most `max_tokens` tokens, by the count of the result.

        See `context.truncating.truncated` for the arguments and errors. It also returns the count
        and the kept ranges.

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

        See `context.splitting` for the arguments and errors, and `context.stream` for text that
        arrives in pieces.

        Returns:
            Chunks with their text, count and range; [] for "".
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
        """Find causes of an unexpected count. See `context.inspecting.inspect`."""
        from bytepair_engine.context.inspecting import inspect

        return inspect(cast("Encoding", self), text)

    def cut_counts(
        self,
        text: str,
        budget: int,
        allowed_special: SpecialTokens = frozenset(),
        front: tuple[str, str] | None = None,
    ) -> tuple[int | None, list[tuple[int, int]]] | None:
        """Count the tokens of the starts or the ends of a text, for `context.measure`.

        Returns:
            As `_core.Pipeline.cut_counts`; None too if the backend has no such search.
        """
        encoding = cast("Encoding", self)
        search = getattr(encoding._backend, "cut_counts", None)
        if search is None:
            return None
        allowed, _ = encoding._special_sets.resolve(allowed_special, ())
        found: tuple[int | None, list[tuple[int, int]]] | None = search(
            text, allowed, budget, front
        )
        return found
