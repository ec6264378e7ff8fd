"""Find control tokens in the text that a template has rendered."""

from __future__ import annotations

from collections.abc import Iterable

from bytepair_engine.chat.layout import Control
from bytepair_engine.chat.templates.traced import ranges_of
from bytepair_engine.vocabulary.special_search import SpecialSearch


def pieces(
    rendered: list[tuple[str, int]], names: SpecialSearch, runs: list[str]
) -> Iterable[tuple[str | Control, int]]:
    """Yield control tokens and texts with their owners.

    Control tokens are searched in runs of the template's own text. A token that the template
    writes in pieces is found; a token that is partly input is not.

    Args:
        rendered: The output of a template.
        names: The control tokens.
        runs: Receives the runs.
    """
    run: list[tuple[str, int]] = []
    for made, owner in rendered:
        plain, end = str(made), 0
        for number, (start, stop) in enumerate(ranges_of(made)):
            if start or number:
                # Input, which may be empty, comes before this range.
                yield from _controls(run, names, runs)
                run = []
                if end < start:
                    yield plain[end:start], owner
            run.append((plain[start:stop], owner))
            end = stop
        if end < len(plain):
            yield from _controls(run, names, runs)
            run = []
            yield plain[end:], owner
    yield from _controls(run, names, runs)


def _controls(
    run: list[tuple[str, int]], names: SpecialSearch, runs: list[str]
) -> Iterable[tuple[str | Control, int]]:
    """Yield the pieces of a run. The owner of a control token is that of its first character."""
    joined = "".join([text for text, _ in run])
    runs.append(joined)
    spans = [(found.start(), found.end()) for found in names.finditer(joined, len(joined))][::-1]
    start = end = 0
    for text, owner in run:
        stop = start + len(text)
        while spans and spans[-1][0] < stop:
            first, last = spans.pop()
            if end < first:
                yield joined[end:first], owner
            yield Control(joined[first:last]), owner
            end = last
        if end < stop:
            yield joined[end:stop], owner
            end = stop
        start = stop
