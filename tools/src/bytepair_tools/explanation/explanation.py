"""The tokens of one text, each with its id, rank, bytes and merges."""

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

#: The most tokens that are explained one by one; a longer text is rejected.
MOST_TOKENS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of the text.

    Attributes:
        number: Its place among the tokens, from 0.
        start: Where in the text it starts, in bytes of UTF-8.
        id: Its id.
        data: What it decodes to amid a text.
        kind: What kind of token it is.
        order: Its rank or priority among merges, or its score; None where nothing merges to it.
        shared: The characters of the text that it has bytes of and another token too; "" for none.
    """

    number: int
    start: int
    id: int
    data: bytes
    kind: Kind
    order: float | None
    shared: str


class Characters:
    """The characters of a text, by where they stand in its UTF-8."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        sizes = (len(character.encode()) for character in text)
        self._starts: Final = [0, *accumulate(sizes)]

    def cut_by(self, start: int, end: int) -> str:
        """The characters of which a range of bytes has some and not all; of an empty range, the
        one that it stands in. A token of one byte has the place of its character."""
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
        order_name: What `order` is: "rank", "priority" or "score".
        describe: What an id is, and how it is merged: `Describer.describe`.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare."""
        self.encoding: Final = encoding
        self._describer: Final = Describer(encoding)
        self._rule: Final = self._describer.model.rule
        self.order_name: Final = self._describer.order_name
        self.describe: Final = self._describer.describe

    def pieces(
        self, text: str, *, allowed_special: SpecialTokens, add_special_tokens: bool
    ) -> list[Piece]:
        """The tokens of a text; special tokens that are not allowed are ordinary text.

        Args:
            text: Any text without lone surrogates.
            allowed_special: As for `Encoding.encode`.
            add_special_tokens: As for `Encoding.encode`.
        Returns:
            In text order; [] for "", except for the template.
        Raises:
            Failure: There are more than MOST_TOKENS.
            InvalidUnicode: `text` holds a lone surrogate.
        """
        ids, starts = self.encoding.encode_with_offsets(
            text,
            unit="byte",
            allowed_special=allowed_special,
            disallowed_special=(),
            add_special_tokens=add_special_tokens,
        )
        if len(ids) > MOST_TOKENS:
            raise Failure(
                f"the text has {len(ids):,} tokens, and at most {MOST_TOKENS:,} can be explained"
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
        """The id of the one token that a text is, by what it decodes to; one that stands for a byte
        is not meant.

        Raises:
            UnknownToken: No token is it.
            Failure: Several are.
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
        """Id to the best priority of a merge that makes it."""
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
    """What decided when a part was merged, as it is shown; "" for a unit."""
    if part.order is None:
        return ""
    return shown_order(-part.order if order_name == "score" else part.order)


def shown_order(order: float | None) -> str:
    """A rank, a priority or a score; a dash for none."""
    return "–" if order is None else f"{order:.6g}" if isinstance(order, float) else str(order)
