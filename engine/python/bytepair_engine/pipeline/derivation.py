"""The derivation of a token: the tree of merges that produces it from its units.

Merges within a token do not depend on the text around it: until a merge crosses the token's ends,
its units merge as if they were alone (docs/formats.md has the proof for ranks). So merging produces
a token in some text if and only if it produces the token from its own units, by this tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bytepair_engine.backends.reference import merge
from bytepair_engine.encoding import Encoding
from bytepair_engine.pipeline.definition import Merges, Model, Ranks, Scores
from bytepair_engine.pipeline.model import Merger, id_rule, unit_rule

#: Maximum length in bytes for which scanning for the best pair at each step is faster than a heap.
_SHORT: Final = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a token during merging.

    Attributes:
        spelling: The spelling in the vocabulary, which may differ from the decoded bytes.
        id: The id; None if the part is not a token.
        order: The rank, the priority or the negated score of the merge, the lowest first; None for
            a unit.
        left: The left part that it was merged from; None for a unit.
        right: The right part that it was merged from; None for a unit.
        step: The index of the merge among those of the token; -1 for a unit.
    """

    spelling: bytes
    id: int | None
    order: float | None = None
    left: Part | None = None
    right: Part | None = None
    step: int = -1


class Derivations:
    """Computes the derivations of a model's tokens."""

    def __init__(self, model: Model) -> None:
        """Prepare the rule of merging."""
        self.model: Final = model
        # No cached_property: on Python 3.11 it holds a lock, which a fork meanwhile leaves locked.
        self._by_id: tuple[Merger[int], dict[int, bytes]] | None = None
        self._merge_units: Final = Merger(
            unit_rule(model) if isinstance(model.rule, Scores) else self._by_rank
        )

    def of(self, token: bytes) -> list[Part]:
        """Merge the units of a token.

        Args:
            token: The spelling in the model's vocabulary.
        Returns:
            One part with its tree if merging produces the token; otherwise the remaining parts; []
            for b"".
        """
        units = list(self._units(token))
        parts = dict(enumerate(units))
        by_id = isinstance(self.model.rule, Merges) or (
            # A unit without a token, or with the token of a byte, never merges.
            isinstance(self.model.rule, Ranks)
            and any(self.model.tokens.get(unit.spelling) is None for unit in units)
        )

        merge_ids, spellings = self._merge_by_id() if by_id else (None, {})

        def merged(at: int, after: int, order: float, result: int | bytes) -> None:
            if isinstance(result, int):
                spelling, token_id = spellings.get(result, b""), result
            else:
                spelling, token_id = result, self.model.tokens.get(result, -1)
            known = None if token_id < 0 else token_id
            step = len(units) - len(parts)
            parts[at] = Part(spelling, known, order, parts[at], parts.pop(after), step)

        if merge_ids is not None:
            # A unit without a token gets an id that no merge has.
            ids = [-1 if unit.id is None else unit.id for unit in units]
            merge_ids([(token_id, n) for n, token_id in enumerate(ids)], merged)
        else:
            self._merge_units([(unit.spelling, n) for n, unit in enumerate(units)], merged)
        return [parts[at] for at in sorted(parts)]

    def _merge_by_id(self) -> tuple[Merger[int], dict[int, bytes]]:
        """Return the rule of merging by ids, and the spelling of each id."""
        if self._by_id is None:
            spellings = {token_id: token for token, token_id in self.model.tokens.items()}
            self._by_id = Merger(id_rule(self.model)), spellings
        return self._by_id

    def _by_rank(self, left: bytes, right: bytes) -> tuple[float, bytes] | None:
        result = self.model.tokens.get(left + right)
        return None if result is None else (result, left + right)

    def makes(self, token: bytes) -> bool:
        """Whether merging the units of a token produces it. Faster than `of`."""
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
    """Flatten trees into one list, without recursion.

    Args:
        parts: The result of `Derivations.of`.
    Returns:
        The units in order, then the results of merges in order. Each is followed by the indices in
        this list of its left and its right part, None for a unit.
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
    indices = {id(part): index for index, part in enumerate(every)}
    return [(part, indices.get(id(part.left)), indices.get(id(part.right))) for part in every]


def model_of(encoding: Encoding) -> Model:
    """Return the model of an encoding; for a rank table, the one that `reference` defines."""
    if encoding.pipeline is not None:
        return encoding.pipeline.model
    tokens = {t: encoding.encode_single_token(t) for t in encoding.token_byte_values()}
    return Model(tokens=tokens, rule=Ranks(), units="bytes", whole_first=True)
