"""How a token is merged: the tree of merges that makes it, if merging its own units does.

A merge within a token never depends on what stands around it: until some merge joins the token's
bytes with their neighbours, what is merged within them is what would be merged if they stood alone
(docs/formats.md has the proof for ranks). So a token comes of merging in some text if and only if
it comes of merging its own units, by this tree and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bytepair_engine.backends.reference import merge
from bytepair_engine.encoding import Encoding
from bytepair_engine.pipeline.definition import Merges, Model, Ranks, Scores
from bytepair_engine.pipeline.model import Merger, id_rule, unit_rule

#: Up to this many bytes, scanning for the best pair at each step is faster than a heap.
_SHORT: Final = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a token at some moment of merging.

    Attributes:
        spelling: As the vocabulary has it, which need not be what it decodes to.
        id: Its id; None where it is no token.
        order: What decided when its two parts merged: a rank or a priority, the lowest first, or
            minus a score; None for a unit.
        left: The left one of the two that it was merged from; None for a unit.
        right: The right one.
        step: Which merge made it, from 0, among all of its token; -1 for a unit.
    """

    spelling: bytes
    id: int | None
    order: float | None = None
    left: Part | None = None
    right: Part | None = None
    step: int = -1


class Derivations:
    """The trees of one model's tokens."""

    def __init__(self, model: Model) -> None:
        """Prepare."""
        self.model: Final = model
        self._merge_units: Final = Merger(
            unit_rule(model) if isinstance(model.rule, Scores) else self._by_rank
        )

    def of(self, token: bytes) -> list[Part]:
        """What merging leaves of a token's own units.

        Args:
            token: As the model's vocabulary spells it.
        Returns:
            One part, with its tree, if merging makes the token; otherwise as many as are left; []
            for b"".
        """
        units = list(self._units(token))
        parts = dict(enumerate(units))
        by_id = isinstance(self.model.rule, Merges) or (
            # What is no token, or stands for a byte, merges with nothing.
            isinstance(self.model.rule, Ranks)
            and any(self.model.tokens.get(unit.spelling) is None for unit in units)
        )

        def merged(at: int, after: int, order: float, result: int | bytes) -> None:
            if isinstance(result, int):
                spelling, token_id = self._spelling.get(result, b""), result
            else:
                spelling, token_id = result, self.model.tokens.get(result, -1)
            known = None if token_id < 0 else token_id
            step = len(units) - len(parts)
            parts[at] = Part(spelling, known, order, parts[at], parts.pop(after), step)

        if by_id:
            # What is no token has an id that no merge has.
            ids = [-1 if unit.id is None else unit.id for unit in units]
            self._merge_ids([(token_id, n) for n, token_id in enumerate(ids)], merged)
        else:
            self._merge_units([(unit.spelling, n) for n, unit in enumerate(units)], merged)
        return [parts[at] for at in sorted(parts)]

    @cached_property
    def _spelling(self) -> dict[int, bytes]:
        return {token_id: token for token, token_id in self.model.tokens.items()}

    @cached_property
    def _merge_ids(self) -> Merger[int]:
        return Merger(id_rule(self.model))

    def _by_rank(self, left: bytes, right: bytes) -> tuple[float, bytes] | None:
        result = self.model.tokens.get(left + right)
        return None if result is None else (result, left + right)

    def makes(self, token: bytes) -> bool:
        """Whether merging the token's own units makes it: as `of` says, and sooner."""
        model = self.model
        if isinstance(model.rule, Ranks) and model.units == "bytes" and len(token) <= _SHORT:
            return len(merge(token, model.tokens, until=2)) <= 2
        parts = self.of(token)
        return len(parts) == 1 and parts[0].id == self.model.tokens.get(token)

    def _units(self, token: bytes) -> Iterator[Part]:
        model = self.model
        prefix, suffix = model.prefix.encode(), model.suffix.encode()
        before = prefix if prefix and token.startswith(prefix) else b""
        after = suffix if suffix and token.endswith(suffix) else b""
        body = token[len(before) : len(token) - len(after)]
        if model.units == "bytes":
            units = [body[i : i + 1] for i in range(len(body))]
        else:
            units = [character.encode() for character in body.decode()]
        for number, unit in enumerate(units):
            spelling = (prefix if number else before) + unit
            spelling += after if number == len(units) - 1 else b""
            token_id = model.tokens.get(spelling)
            if token_id is None and all(byte in model.byte_tokens for byte in spelling):
                yield from (Part(bytes([b]), model.byte_tokens[b]) for b in spelling)
            else:
                yield Part(spelling, token_id)


def flat(parts: Iterable[Part]) -> list[tuple[Part, int | None, int | None]]:
    """The parts of trees as one list, however deep they are.

    Args:
        parts: As `Derivations.of` returns them.
    Returns:
        Units in the order of the token, then what each merge makes, in the order of the merges:
        each with the places in this list of the two parts that it was merged from, None for a unit.
    """
    units, merged, waiting = [], [], [*parts][::-1]
    while waiting:
        part = waiting.pop()
        if part.left is None or part.right is None:
            units.append(part)
        else:
            merged.append(part)
            waiting += [part.right, part.left]
    every = units + sorted(merged, key=lambda part: part.step)
    places = {id(part): place for place, part in enumerate(every)}
    return [(part, places.get(id(part.left)), places.get(id(part.right))) for part in every]


def model_of(encoding: Encoding) -> Model:
    """The model of any encoding: a rank table's is that of `reference`."""
    if encoding.pipeline is not None:
        return encoding.pipeline.model
    tokens = {t: encoding.encode_single_token(t) for t in encoding.token_byte_values()}
    return Model(tokens=tokens, rule=Ranks(), units="bytes", whole_first=True)
