"""A vocabulary that consists of a rank table, a split pattern and special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bytepair_engine.pipeline.definition import NO_TEMPLATE, Template


@dataclass(frozen=True)
class Ranked:
    """The parts of an encoding with a rank table.

    Attributes:
        table: The rank table of the backend.
        pattern: The split pattern.
        special_tokens: Spelling to id.
        template: The ids that `add_special_tokens` puts around a text.
    """

    table: Any
    pattern: str
    special_tokens: Mapping[str, int]
    template: Template = NO_TEMPLATE
