"""Explain the tokens of a text: ids, ranks, bytes and merges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from bytepair_engine import Encoding
from bytepair_engine.pipeline.definition import Merges, Scores
from bytepair_engine.pipeline.derivation import Part
from bytepair_engine.pipeline.describing import Describer, Kind
from bytepair_engine.vocabulary.special_sets import SpecialTokens

from bytepair_tools.shared.failure import Failure

#: Maximum number of tokens of a text; longer texts are rejected.
MAX_TOKENS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of the text.

    Attributes:
        number: The index of the token, from 0.
        start: The start in the text, in bytes of UTF-8.
        id: The id.
        data: The bytes that it decodes to in the middle of a text.
        kind: The kind of token.
        order: The rank, priority or score of the token; None if no merge produces it.
        shared: The characters of the text that it shares with another token; "" for none.
    """

    number: int
    start: int
    id: int
    data: bytes
    kind: Kind
    order: float | None
    shared: str


class Characters:
    """The characters of a text by their position in its UTF-8."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        sizes = (len(character.encode()) for character in text)
        self._starts: Final = [0, *accumulate(sizes)]

    def cut_by(self, start: int, end: int) -> str:
        """Return the characters that a range of bytes contains partly; for an empty range, the
        character that contains it. A token of one byte has the start of its character."""
        starts, end = self._starts, max(end, start + 1)
        first, last = bisect_right(starts, start) - 1, bisect_left(starts, end) - 1
        return "".join(
            character
            for i, character in enumerate(self._text[first : last + 1], first)
            if starts[i] < start or end < starts[i + 1]
        )


class Explainer:
    """Explains texts in one encoding.

    Attributes:
        encoding: The encoding.
        order_name: The meaning of `order`: "rank", "priority" or "score".
        describe: Describes a token by its id: `Describer.describe`.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare for an encoding."""
        self.encoding: Final = encoding
        self._describer: Final = Describer(encoding)
        self._rule: Final = self._describer.model.rule
        self.order_name: Final = self._describer.order_name
        self.describe: Final = self._describer.describe

    def pieces(
        self, text: str, *, allowed_special: SpecialTokens, add_special_tokens: bool
    ) -> list[Piece]:
        """Return the tokens of a text. Special tokens that are not allowed are ordinary text.

        Args:
            text: Any text without lone surrogates.
            allowed_special: See `Encoding`.
            add_special_tokens: See `Encoding`.
        Returns:
            The tokens in text order; [] for "", apart from the template.
        Raises:
            Failure: The text has more than MAX_TOKENS tokens.
            InvalidUnicode: `text` holds a lone surrogate.
        """
        ids, starts = self.encoding.encode_with_offsets(
            text,
            unit="byte",
            allowed_special=allowed_special,
            disallowed_special=(),
            add_special_tokens=add_special_tokens,
        )
        if len(ids) > MAX_TOKENS:
            raise Failure(
                f"the text has {len(ids):,} tokens, and at most {MAX_TOKENS:,} can be explained"
            )
        ends = [*starts, len(text.encode())][1:]
        characters = Characters(text)
        pieces = []
        for number, (token_id, start, end) in enumerate(zip(ids, starts, ends, strict=True)):
            data = self.encoding.decode_single_token_bytes(token_id)
            kind = self._describer.kind(token_id)
            is_whole = kind in ("special", "unknown") or _is_utf8(data)
            shared = "" if is_whole else characters.cut_by(start, end)
            order = self._order(token_id)
            pieces.append(Piece(number, start, token_id, data, kind, order, shared))
        return pieces

    def token_id(self, text: str) -> int:
        """Return the id of the token that decodes to a text; byte tokens are ignored.

        Raises:
            UnknownToken: There is no such token.
            Failure: There are several.
        """
        pipeline = self.encoding.pipeline
        data = text.encode(errors="surrogatepass")
        tokens = {} if pipeline is None else pipeline.decoder.middle
        byte_ids = set(self._describer.model.byte_tokens.values())
        found = [i for i, d in tokens.items() if d == data and i not in byte_ids]
        if len(found) > 1:
            raise Failure(f"several tokens have this text: ids {', '.join(map(str, found))}")
        return found[0] if found else self.encoding.encode_single_token(text)

    def _order(self, token_id: int) -> float | None:
        if self._describer.kind(token_id) in ("special", "unknown"):
            return None
        rule = self._rule
        if isinstance(rule, Scores):
            return rule.scores.get(token_id)
        if isinstance(rule, Merges):
            return self._priorities.get(token_id)
        return token_id

    @cached_property
    def _priorities(self) -> dict[int, float]:
        """Id to the lowest priority of a merge that produces it."""
        rule = self._rule
        found: dict[int, float] = {}
        if isinstance(rule, Merges):
            for priority, result in zip(rule.priorities, rule.results, strict=True):
                found.setdefault(result, priority)
        return found


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def order_of(part: Part, order_name: str) -> str:
    """Return the order of a merged part as text; "" for a unit."""
    if part.order is None:
        return ""
    return shown_order(-part.order if order_name == "score" else part.order)


def shown_order(order: float | None) -> str:
    """Return a rank, a priority or a score as text; a dash for None."""
    return "–" if order is None else f"{order:.6g}" if isinstance(order, float) else str(order)
