"""Where the search for the longest text that fits beside other text starts.

Beside a marker, or an end beside its start, a longer text can fit than alone: its last token may
become part of a longer one that ends in the other text.
"""

from __future__ import annotations

from typing import Final

from bytepair_engine.context.measure import longest_token
from bytepair_engine.context.text_split_points import RULE_CONTEXT, TextSplitPoints
from bytepair_engine.context.valid_cuts import local_steps
from bytepair_engine.encoding import Encoding
from bytepair_engine.pipeline.normalising import normalise_text

#: Distance at which a split point is first searched, in characters.
_NEAR: Final = 16


def beyond_beside_text(
    encoding: Encoding, points: TextSplitPoints, beyond: int, *, is_end: bool
) -> int:
    """Return a position beyond which no start, or end, fits beside other text either.

    A token may extend from the other text to `beyond`: not across a split point, and not further
    than the longest token.

    Args:
        encoding: The encoding.
        points: The text and its split points.
        beyond: The position that `Measure.forwards` or `backwards` returned, in code points.
        is_end: Whether it is one of `backwards`.
    """
    pipeline, longest = encoding.pipeline, longest_token(encoding)
    steps = [] if pipeline is None else local_steps(pipeline.normalisers)
    distance, end = _NEAR, len(points.text)
    while True:
        if is_end:
            first, last = max(0, beyond - distance), beyond
        else:
            first, last = max(0, beyond - 1), min(beyond + distance, end)
        found = points.last(first, last)
        if found > first:
            return max(0, found - RULE_CONTEXT) if is_end else min(found + 1, end)
        edge = first if is_end else last
        if edge in (0, end) or (
            # Normalisers may drop text.
            distance >= longest and len(normalise_text(points.text[first:last], steps)) >= longest
        ):
            return edge
        distance *= 2
