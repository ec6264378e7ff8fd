"""How a piece becomes tokens: step 5 of docs/formats.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from bytepair_engine.pipeline.byte_alphabet import read_bytes
from bytepair_engine.pipeline.definition import Merges, Model, Scores

#: What merges: an id, or bytes that are looked up only afterwards.
P = TypeVar("P", int, bytes)

#: Two neighbours to (priority, result), the lowest priority first; None if they cannot merge.
Rule = Callable[[P, P], tuple[float, P] | None]


class Tokenizer:
    """The model of a pipeline, ready to be applied.

    Attributes:
        written: Whether pieces come as `ByteAlphabet` writes them.
    """

    def __init__(self, model: Model, *, written: bool) -> None:
        """Prepare."""
        self._model: Final = model
        self.written: Final = written
        self._prefix: Final = model.prefix.encode()
        self._suffix: Final = model.suffix.encode()
        self._merge_ids: Final = Merger(id_rule(model))
        self._merge_units: Final = Merger(unit_rule(model))

    def tokens(self, piece: str) -> list[tuple[int, int]]:
        """Turn a piece, which is not empty, into tokens.

        Returns:
            Ids, each with the index of the byte at which it starts: of the piece's UTF-8, or of
            the bytes that are written.
        """
        model = self._model
        data = read_bytes(piece) if self.written else piece.encode()
        assert data is not None  # written by `ByteAlphabet`
        if model.whole_first and (whole := model.tokens.get(data)) is not None:
            return [(whole, 0)]
        units = self._units(piece, data)
        if isinstance(model.rule, Scores):
            merged = self._merge_units(units)
            return list(self._looked_up(self._taken_apart(merged, model.rule)))
        units = [(self._affixed(unit, start, len(data)), start) for unit, start in units]
        return self._merge_ids(list(self._looked_up(units)))

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

    def _looked_up(self, units: Iterable[tuple[bytes, int]]) -> Iterator[tuple[int, int]]:
        """The ids of units, of bytes in their place, or the unknown one."""
        model = self._model
        unknown: int | None = None  # where an unknown part starts that is not given yet
        for unit, start in units:
            token = model.tokens.get(unit)
            spelled = [model.byte_tokens.get(byte) for byte in unit]
            if token is None and None not in spelled:
                yield from ((i, start + n) for n, i in enumerate(spelled) if i is not None)
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

    def _taken_apart(
        self, parts: Sequence[tuple[bytes, int]], rule: Scores
    ) -> Iterator[tuple[bytes, int]]:
        for part, start in parts:
            halves = rule.taken_apart.get(self._model.tokens.get(part, -1))
            if halves is None:
                yield part, start
            else:
                left, right = halves
                yield from self._taken_apart([(left, start), (right, start + len(left))], rule)


class Merger(Generic[P]):
    """Merges the best pair of neighbours, the leftmost of several, until none can merge."""

    def __init__(self, rule: Rule[P]) -> None:
        self._rule: Rule[P] = rule

    def __call__(
        self,
        parts: list[tuple[P, int]],
        merged: Callable[[int, int, float, P], None] | None = None,
    ) -> list[tuple[P, int]]:
        """A heap holds each pair that could merge when it came to be; one that is no longer
        there, because a part of it has merged since, is passed over.

        Args:
            parts: Values, and where each starts.
            merged: Called at each merge: the indices in `parts` of its left and its right part
                (that of a merged part is the one of its left), its priority and its result.
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
    """The rule of ranks or of merges, between ids."""
    rule, tokens = model.rule, model.tokens
    if isinstance(rule, Merges):
        pairs = rule.pairs()
        return lambda left, right: pairs.get((left, right))
    spelling = {token_id: token for token, token_id in tokens.items()}

    def by_rank(left: int, right: int) -> tuple[float, int] | None:
        if left not in spelling or right not in spelling:
            return None  # the token of a byte, or the unknown one
        result = tokens.get(spelling[left] + spelling[right])
        return None if result is None else (result, result)

    return by_rank


def unit_rule(model: Model) -> Rule[bytes]:
    """The rule of scores, between strings."""
    rule, tokens = model.rule, model.tokens
    scores = rule.scores if isinstance(rule, Scores) else {}

    def by_score(left: bytes, right: bytes) -> tuple[float, bytes] | None:
        result = tokens.get(left + right, -1)
        return (-scores[result], left + right) if result in scores else None

    return by_score
