"""Convert a piece to tokens: step 5 of docs/formats.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from bytepair_engine.pipeline.byte_alphabet import read_bytes
from bytepair_engine.pipeline.definition import Merges, Model, Scores

#: A part during merging: an id, or bytes whose id is looked up afterwards.
P = TypeVar("P", int, bytes)

#: Returns (priority, result) of two adjacent parts, the lowest priority first; None if they cannot
#: merge.
Rule = Callable[[P, P], tuple[float, P] | None]


class Tokenizer:
    """Applies the model of a pipeline.

    Attributes:
        written: Whether `ByteAlphabet` has encoded the pieces.
    """

    def __init__(self, model: Model, *, written: bool) -> None:
        """Prepare the rules of merging."""
        self._model: Final = model
        self.written: Final = written
        self._prefix: Final = model.prefix.encode()
        self._suffix: Final = model.suffix.encode()
        self._merge_ids: Final = Merger(id_rule(model))
        self._merge_units: Final = Merger(unit_rule(model))

    def tokens(self, piece: str) -> list[tuple[int, int]]:
        """Convert a non-empty piece to tokens.

        Returns:
            Each id with its start: the index of a byte of the piece's UTF-8, or of the bytes that
            `ByteAlphabet` encoded.
        """
        model = self._model
        data = read_bytes(piece) if self.written else piece.encode()
        assert data is not None  # encoded by `ByteAlphabet`
        if model.whole_first and (whole := model.tokens.get(data)) is not None:
            return [(whole, 0)]
        units = self._units(piece, data)
        if isinstance(model.rule, Scores):
            merged = self._merge_units(units)
            return list(self._ids(self._decomposed(merged, model.rule)))
        units = [(self._affixed(unit, start, len(data)), start) for unit, start in units]
        return self._merge_ids(list(self._ids(units)))

    def _units(self, piece: str, data: bytes) -> list[tuple[bytes, int]]:
        if self._model.units == "bytes":
            return [(data[i : i + 1], i) for i in range(len(data))]
        units, start = [], 0
        for character in piece:
            unit = character.encode()
            units.append((unit, start))
            start += len(unit)
        return units

    def _affixed(self, unit: bytes, start: int, end: int) -> bytes:
        before = self._prefix if start else b""
        after = self._suffix if start + len(unit) == end else b""
        return before + unit + after

    def _ids(self, units: Iterable[tuple[bytes, int]]) -> Iterator[tuple[int, int]]:
        """Yield the ids of units; of their bytes, or the unknown id, for units without a token."""
        model = self._model
        unknown: int | None = None  # start of an unknown part that was not yielded yet
        for unit, start in units:
            token = model.tokens.get(unit)
            byte_ids = [model.byte_tokens.get(byte) for byte in unit]
            if token is None and None not in byte_ids:
                yield from ((i, start + n) for n, i in enumerate(byte_ids) if i is not None)
                continue
            if unknown is not None and model.unknown is not None:
                if token is None and model.fuse_unknown:
                    continue
                yield model.unknown, unknown
            unknown = start if token is None else None
            if token is not None:
                yield token, start
        if unknown is not None and model.unknown is not None:
            yield model.unknown, unknown

    def _decomposed(
        self, parts: Sequence[tuple[bytes, int]], rule: Scores
    ) -> Iterator[tuple[bytes, int]]:
        for part, start in parts:
            halves = rule.taken_apart.get(self._model.tokens.get(part, -1))
            if halves is None:
                yield part, start
            else:
                left, right = halves
                yield from self._decomposed([(left, start), (right, start + len(left))], rule)


class Merger(Generic[P]):
    """Merges the best adjacent pair, the leftmost of several, until no pair can merge."""

    def __init__(self, rule: Rule[P]) -> None:
        self._rule: Rule[P] = rule

    def __call__(
        self,
        parts: list[tuple[P, int]],
        merged: Callable[[int, int, float, P], None] | None = None,
    ) -> list[tuple[P, int]]:
        """Merge parts, with a heap of mergeable pairs. A pair is added when it becomes adjacent,
        and skipped if one of its parts has merged since.

        Args:
            parts: Values with their starts.
            merged: Called at each merge with the indices in `parts` of the left and the right part
                (a merged part has the index of its left one), the priority and the result.
        """
        values: list[P | None] = [value for value, _ in parts]
        following = [*range(1, len(values)), -1]
        previous = list(range(-1, len(values) - 1))
        heap: list[tuple[float, int, P, P, P]] = []

        def consider(at: int) -> Iterator[tuple[float, int, P, P, P]]:
            if at >= 0 and following[at] >= 0:
                left, right = values[at], values[following[at]]
                assert left is not None
                assert right is not None
                found = self._rule(left, right)
                if found is not None:
                    yield found[0], at, found[1], left, right

        for at in range(len(values)):
            heap.extend(consider(at))
        heapify(heap)
        while heap:
            priority, at, result, left, right = heappop(heap)
            after = following[at]
            if values[at] != left or after < 0 or values[after] != right:
                continue
            values[at], values[after] = result, None
            if merged is not None:
                merged(at, after, priority, result)
            following[at] = following[after]
            if following[at] >= 0:
                previous[following[at]] = at
            for neighbour in (previous[at], at):
                for pair in consider(neighbour):
                    heappush(heap, pair)
        return [
            (value, start)
            for value, (_, start) in zip(values, parts, strict=True)
            if value is not None
        ]


def id_rule(model: Model) -> Rule[int]:
    """Return the rule of a model with ranks or a list of merges, on ids."""
    rule, tokens = model.rule, model.tokens
    if isinstance(rule, Merges):
        pairs = rule.pairs()
        return lambda left, right: pairs.get((left, right))
    spelling = {token_id: token for token, token_id in tokens.items()}

    def by_rank(left: int, right: int) -> tuple[float, int] | None:
        if left not in spelling or right not in spelling:
            return None  # the token of a byte, or the unknown token
        result = tokens.get(spelling[left] + spelling[right])
        return None if result is None else (result, result)

    return by_rank


def unit_rule(model: Model) -> Rule[bytes]:
    """Return the rule of a model with scores, on strings."""
    rule, tokens = model.rule, model.tokens
    scores = rule.scores if isinstance(rule, Scores) else {}

    def by_score(left: bytes, right: bytes) -> tuple[float, bytes] | None:
        result = tokens.get(left + right, -1)
        return (-scores[result], left + right) if result in scores else None

    return by_score
