"""Stop strings: where text that arrives in pieces has its first match.

The match that starts first wins, and of several that start there the longest. So a match
that is complete still waits while one that starts earlier, or at the same place and is
longer, can come true; this is decided by the text alone, never by how it was cut.

The automaton is that of A. Aho and M. Corasick, "Efficient String Matching: An Aid to
Bibliographic Search" (1975). Its state after each character is the longest suffix of the
text that is a prefix of some stop string, so that everything before that suffix is free to
go, and the cost of a character is constant when shared out over the text.

A long text costs less, up to where the first stop string ends. In state 0 a regular expression
finds the next character with which one starts. From there on, the next state is looked up where
the same character came in the same state before. Such steps are remembered as they come: the
table of all of them could be as large as the square of the stop strings. From the end of a stop
string on, each character is looked at for itself; the match is decided after no more characters
than the longest stop string has. The search of `str.find` for one stop string after the other
takes five times as long for sixty of them, and that of one regular expression for all of them
is not bounded by the length of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from functools import lru_cache
from typing import Final, Generic, TypeVar

from bytepair_engine import cancel

T = TypeVar("T", str, bytes)

#: Automata that are kept for streams to come with the same stop strings.
_KEPT_AUTOMATA: Final = 64
#: Characters that are read between two looks at whether the work was cancelled.
_PART: Final = 1 << 14
#: A text of this many characters, as that of one id, is read without remembered steps.
_SHORT: Final = 32
#: Characters that are read from one with which a stop string starts, before the next such
#: character is looked for; twice as many each time, until that one is more than `_SHORT` away.
_FEW: Final = 4
#: Steps that an automaton remembers: some for each state of the most stop strings that the
#: service takes, which have 4,096 bytes.
_KEPT_STEPS: Final = 1 << 13


class StopStrings(Generic[T]):
    """The automaton of a set of stop strings: shared by streams, in any number of threads.

    State 0 is that of no prefix. Nothing changes but which steps are remembered.

    Attributes:
        step: For each state, the next state for each character (or byte) that continues it.
        fallback: For each state, that of its longest proper suffix which is a prefix too.
        match: For each state, how long the longest stop string is that ends here; 0 for none.
        open: For each state, how long the longest suffix is that more text can make a stop
            string of, or a longer one; 0 for none.
        first: Finds the next character with which a stop string starts.
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
        #: For each state, the next state for characters (or bytes) that were seen there, but
        #: those that end a stop string; and how many these are in all states.
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
        """The state after one more character (or byte)."""
        while unit not in self.step[state]:
            if state == 0:
                return 0
            state = self.fallback[state]
        return self.step[state][unit]

    def run(self, state: int, text: T, index: int) -> tuple[int, int]:
        """Go on until a stop string is about to end.

        Args:
            state: The state before `index`.
            text: What is read.
            index: Where reading starts.
        Returns:
            The state where reading ended, and where that is: the next character (or byte) is
            the first that ends a stop string, or there is none.
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
        """As `run`, at most up to `end`, and by steps that are remembered."""
        known = self._known
        units = iter(text[index:end])
        while True:
            try:
                for unit in units:
                    state = known[state][unit]
            except KeyError:
                following = self.next(state, unit)
                if self.match[following]:
                    # It happens once in a stream, and counting all along would cost each step.
                    return state, end - 1 - sum(1 for _ in units)
                self._remember(state, unit, following)
                state = following
            else:
                return state, end

    def _remember(self, state: int, unit: str | int, following: int) -> None:
        """Keep a step. Threads that do this at the same time lose steps, and no more."""
        if self._kept >= _KEPT_STEPS:
            for row in self._known:
                row.clear()
            self._kept = 0
        self._known[state][unit] = following
        self._kept += 1


@lru_cache(_KEPT_AUTOMATA)
def compile_stops(stops: tuple[T, ...]) -> StopStrings[T]:
    """The automaton of `stops`: at least one, none empty."""
    return StopStrings(stops)


class StopMatcher(Generic[T]):
    """Looks for stop strings in one stream.

    Attributes:
        held: The text that can still be part of a match, or is.
        matched: The stop string that matched; None as long as it is not decided.
        end: Where the match ends, or the best one so far, in characters (or bytes) of the
            stream; None where there is none.
    """

    __slots__ = ("_automaton", "_before", "_best", "_include", "_state", "end", "held", "matched")

    def __init__(self, automaton: StopStrings[T], empty: T, *, include_stop: bool) -> None:
        self._automaton: Final[StopStrings[T]] = automaton
        self._include: Final = include_stop
        self._state = 0
        self._best: tuple[int, int] | None = None  # start and end in `held`
        self._before = 0  # how much came before `held`
        self.held: T = empty
        self.matched: T | None = None
        self.end: int | None = None

    @property
    def seen(self) -> int:
        """How many characters (or bytes) were taken, as long as no match is decided."""
        return self._before + len(self.held)

    def feed(self, text: T) -> T:
        """Take the next text.

        Returns:
            The text that became certain to stand before any match, or, where a match is
            decided, all that is left of it and, if it is to be included, the match.
        Raises:
            Cancelled: The work was cancelled within a text of some length. Nothing of the
                text was taken.
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
        """Take the next text if nothing is held and no stop string starts in it: a look that
        costs less than `feed`, which would give the text back as it is."""
        if self.held or self.matched is not None or self._automaton.first.search(text):
            return False
        self._before += len(text)
        return True

    def finish(self) -> T:
        """Say that no more text comes: what is held is released, up to a match."""
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
