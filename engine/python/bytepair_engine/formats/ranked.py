"""The result of reading a file: a rank table, one split pattern and special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bytepair_engine.pipeline.definition import NO_TEMPLATE, Template


@dataclass(frozen=True)
class Ranked:
    """The parts of an encoding like the built-in ones.

    Attributes:
        table: The ordinary tokens, as the backend keeps them.
        pattern: The split pattern.
        special_tokens: Spelling to id.
        template: What frames a text on request.
    """

    table: Any
    pattern: str
    special_tokens: Mapping[str, int]
    template: Template = NO_TEMPLATE
