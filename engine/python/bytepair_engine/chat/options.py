"""The options of rendering that all chat formats share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal, get_args

from bytepair_engine.errors import InvalidOption, check_type

PastReasoning = Literal[
    "default",
    "keep",
    "before_first_final",
    "before_last_final_if_answered",
    "before_last_final",
]

_PAST_REASONING: Final = get_args(PastReasoning)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """Options of rendering. The result never depends on the clock, locale or environment.

    Attributes:
        add_generation_prompt: Whether to end with the start of the assistant's reply; False for a
            stored transcript.
        continue_final_message: Whether to leave the last message, which must be an assistant's,
            open so that the model continues it; there is no generation prompt then.
        past_reasoning: The rule that drops reasoning of earlier turns. "default" is the format's
            own. "before_first_final" is openai/harmony's. "before_last_final_if_answered" corrects
            it by dropping up to the last `final`. Both apply only if the last assistant message is
            `final`. "before_last_final" is vLLM's, which always drops.
        reasoning_effort: One of the format's values; "" for the default.
        current_date: A date such as "2026-11-23"; "" for none.
        format_options: The format's own options: keys and values that it lists.
    """

    add_generation_prompt: bool = True
    continue_final_message: bool = False
    past_reasoning: PastReasoning = "default"
    reasoning_effort: str = ""
    current_date: str = ""
    format_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.past_reasoning not in _PAST_REASONING:
            raise InvalidOption("past_reasoning", f"must be one of {', '.join(_PAST_REASONING)}")
        check_type("current_date", self.current_date, str, "str")
        if self.current_date and not _is_date(self.current_date):
            raise InvalidOption("current_date", "must be a date such as 2026-11-23")

    @property
    def prompts(self) -> bool:
        """Whether the rendering ends with a generation prompt."""
        return self.add_generation_prompt and not self.continue_final_message


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text  # it reads other forms too
    except ValueError:
        return False
