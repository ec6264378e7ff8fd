"""Incremental search for stop strings in text that arrives in pieces.

The match that starts first wins, and the longest of several with the same start. So a complete
match is held while an earlier or longer one is still possible. The result depends only on the text,
never on how it is divided.

The automaton is that of A. Aho and M. Corasick, "Efficient String Matching: An Aid to
Bibliographic Search" (1975). Its state after each character is the longest suffix of the text that
is a prefix of some stop string. All text before that suffix can be released, and the amortised cost
per character is constant.

Long texts have a fast path up to the end of the first stop string. In state 0, a regular expression
finds the next character with which a stop string starts. From there on, transitions are cached as
they occur; a table of all of them could be as large as the square of the stop strings. After the
end of a stop string, characters are processed one by one; the match is decided after at most as
many characters as the longest stop string has. Alternatives: `str.find` for each of sixty stop
strings takes five times as long, and a single regular expression for all of them does not run in
time linear in the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from functools import lru_cache
from typing import Final, Generic, TypeVar

from bytepair_engine import cancel

T = TypeVar("T", str, bytes)

#: Number of cached automata.
_MAX_CACHED_AUTOMATA: Final = 64
#: Number of characters between two checks for cancellation.
_PART: Final = 1 << 14
#: Maximum length of a text, such as that of one id, for which the fast path is not worthwhile.
_SHORT: Final = 32
#: Number of characters to process from one with which a stop string may start, before searching
#: for the next one. Doubles each time, until the next one is more than `_SHORT` away.
_FEW: Final = 4
#: Maximum number of cached transitions of an automaton: a few for each state of the largest stop
#: strings that the service accepts, which have 4,096 bytes.
_KEPT_STEPS: Final = 1 << 13


class StopStrings(Generic[T]):
    """The automaton of a set of stop strings. Thread-safe, and shared by streams.

    State 0 is the empty prefix. Apart from cached transitions, an automaton is immutable.

    Attributes:
        step: For each state, the next state by each character (or byte) that continues it.
        fallback: For each state, the state of its longest proper suffix that is a prefix.
        match: For each state, the length of the longest stop string that ends there; 0 for none.
        open: For each state, the length of the longest suffix that more text can complete to a
            stop string, or to a longer one; 0 for none.
        first: Matches a character with which a stop string starts.
    """

    __slots__ = ("_kept", "_known", "fallback", "first", "match", "open", "step")

    def __init__(self, stops: Collection[T]) -> None:
        self.step: Final[list[dict[str | int, int]]] = [{}]
        depth = [0]
        self.match: Final = [0]
        for stop in stops:
            state = 0
            for unit in stop:
                if unit not in self.step[state]:
                    self.step[state][unit] = len(self.step)
                    self.step.append({})
                    depth.append(depth[state] + 1)
                    self.match.append(0)
                state = self.step[state][unit]
            self.match[state] = len(stop)
        self.fallback: Final = [0] * len(self.step)
        self.open: Final = [0] * len(self.step)
        self._link(depth)
        starts = sorted({re.escape(stop[:1]) for stop in stops})
        either: T = "|" if isinstance(starts[0], str) else b"|"
        self.first: Final[re.Pattern[T]] = re.compile(either.join(starts))
        #: For each state, the cached transitions that do not end a stop string; and their total
        #: number.
        self._known: Final[list[dict[str | int, int]]] = [{} for _ in self.step]
        self._kept = 0

    def _link(self, depth: list[int]) -> None:
        queue = deque(self.step[0].values())
        while queue:
            state = queue.popleft()
            back = self.fallback[state]
            self.match[state] = self.match[state] or self.match[back]
            self.open[state] = depth[state] if self.step[state] else self.open[back]
            for unit, child in self.step[state].items():
                self.fallback[child] = self.next(back, unit)
                queue.append(child)

    def next(self, state: int, unit: str | int) -> int:
        """Return the state after one more character (or byte)."""
        while unit not in self.step[state]:
            if state == 0:
                return 0
            state = self.fallback[state]
        return self.step[state][unit]

    def run(self, state: int, text: T, index: int) -> tuple[int, int]:
        """Process text until just before the end of a stop string.

        Args:
            state: The state before `index`.
            text: The text.
            index: The start position.
        Returns:
            The state and the position reached: the next character (or byte) is the first that ends
            a stop string, or the text is at its end.
        Raises:
            Cancelled: The work was cancelled.
        """
        size, part = _FEW, index
        while index < len(text):
            if index >= part:
                cancel.check()
                part = min(len(text), index + _PART)
            if state == 0:
                found = self.first.search(text, index, part)
                if found is None:
                    index = part
                    continue
                if found.start() - index > _SHORT:
                    size = _FEW
                index = found.start()
            end = min(index + size, part)
            state, index = self._run(state, text, index, end)
            if index < end:
                break
            size = min(2 * size, _PART)
        return state, index

    def _run(self, state: int, text: T, index: int, end: int) -> tuple[int, int]:
        """Process text up to `end` with cached transitions; see `run`."""
        known = self._known
        units = iter(text[index:end])
        while True:
            try:
                for unit in units:
                    state = known[state][unit]
            except KeyError:
                following = self.next(state, unit)
                if self.match[following]:
                    # Counted here because this happens once per stream; a counter would cost
                    # time at every step.
                    return state, end - 1 - sum(1 for _ in units)
                self._cache(state, unit, following)
                state = following
            else:
                return state, end

    def _cache(self, state: int, unit: str | int, following: int) -> None:
        """Cache a transition. Concurrent threads may lose cached transitions, which is harmless."""
        if self._kept >= _KEPT_STEPS:
            for row in self._known:
                row.clear()
            self._kept = 0
        self._known[state][unit] = following
        self._kept += 1


@lru_cache(_MAX_CACHED_AUTOMATA)
def compile_stops(stops: tuple[T, ...]) -> StopStrings[T]:
    """Build the automaton of at least one stop string, none empty; cached."""
    return StopStrings(stops)


class StopMatcher(Generic[T]):
    """Searches for stop strings in one stream.

    Attributes:
        held: The text that is, or can still become, part of a match.
        matched: The stop string that matched; None if no match is decided.
        end: The end of the match, or of the best one so far, in characters (or bytes) of the
            stream; None if there is none.
    """

    __slots__ = ("_automaton", "_before", "_best", "_include", "_state", "end", "held", "matched")

    def __init__(self, automaton: StopStrings[T], empty: T, *, include_stop: bool) -> None:
        self._automaton: Final[StopStrings[T]] = automaton
        self._include: Final = include_stop
        self._state = 0
        self._best: tuple[int, int] | None = None  # start and end in `held`
        self._before = 0  # number of characters before `held`
        self.held: T = empty
        self.matched: T | None = None
        self.end: int | None = None

    @property
    def seen(self) -> int:
        """Number of characters (or bytes) processed before a match is decided."""
        return self._before + len(self.held)

    def feed(self, text: T) -> T:
        """Process the next text.

        Returns:
            The text that is certainly before any match. If a match is decided, the rest of the
            text before it, and the match if it is included.
        Raises:
            Cancelled: The work was cancelled in a long text, which was not processed.
        """
        automaton = self._automaton
        index, text = len(self.held), self.held + text
        state, best = self._state, self._best
        if best is None and len(text) - index > _SHORT:
            state, index = automaton.run(state, text, index)
        while index < len(text):
            if state == 0 and best is None:
                found = automaton.first.search(text, index)
                if found is None:
                    index = len(text)
                    break
                index = found.start()
            state = automaton.next(state, text[index])
            index += 1
            length = automaton.match[state]
            if length and (best is None or index - length <= best[0]):
                best = index - length, index
            if best is not None and index - automaton.open[state] > best[0]:
                return self._decide(text, best)
        free = index - automaton.open[state]
        if best is not None:
            self.end = self._before + best[1]
            free = min(free, best[0])
            best = best[0] - free, best[1] - free
        self._state, self._best, self.held = state, best, text[free:]
        self._before += free
        return text[:free]

    def passes(self, text: T) -> bool:
        """Skip the next text if nothing is held and no stop string starts in it. Cheaper than
        `feed`, which would return the text unchanged.

        Returns:
            Whether the text was skipped; if not, nothing has changed.
        """
        if self.held or self.matched is not None or self._automaton.first.search(text):
            return False
        self._before += len(text)
        return True

    def finish(self) -> T:
        """End the text, and release the held text up to a match."""
        text, best = self.held, self._best
        if best is not None:
            return self._decide(text, best)
        self.held = text[:0]
        return text

    def _decide(self, text: T, best: tuple[int, int]) -> T:
        start, end = best
        self.end = self._before + end
        self.matched = text[start:end]
        self.held = text[:0]
        return text[: end if self._include else start]
