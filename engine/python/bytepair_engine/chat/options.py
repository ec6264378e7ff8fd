"""How a chat is rendered: the options that formats share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from bytepair_engine.errors import InvalidOption

PastReasoning = Literal[
    "default",
    "keep",
    "before_first_final",
    "before_last_final_if_answered",
    "before_last_final",
]

_PAST_REASONING: Final = get_args(PastReasoning)
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a chat is rendered. Nothing is read from a clock, a locale or the environment.

    Attributes:
        add_generation_prompt: End with what begins the assistant's reply; False for a stored
            transcript.
        continue_final_message: Leave the last message, an assistant's, open, so that the model
            goes on with it; then there is no generation prompt.
        past_reasoning: Which reasoning of earlier turns is left out. "default" is the format's
            own rule. "before_first_final" is openai/harmony's; "before_last_final_if_answered"
            its correction, which drops up to the last `final`; both only where the last
            assistant's message is `final`. "before_last_final" is vLLM's, which always drops.
        reasoning_effort: One of the format's values; "" for its default.
        current_date: Such as "2026-11-23"; "" for none.
        format_options: Keys and values that the format lists.
    """

    add_generation_prompt: bool = True
    continue_final_message: bool = False
    past_reasoning: PastReasoning = "default"
    reasoning_effort: str = ""
    current_date: str = ""
    format_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.past_reasoning not in _PAST_REASONING:
            raise InvalidOption("past_reasoning", f"must be one of {_PAST_REASONING}")
        if self.current_date and not _DATE.fullmatch(self.current_date):
            raise InvalidOption("current_date", "must be a date such as 2026-11-23")

    @property
    def prompts(self) -> bool:
        """Whether the rendering ends with a generation prompt."""
        return self.add_generation_prompt and not self.continue_final_message
