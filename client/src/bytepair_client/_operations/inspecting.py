"""What makes the count of a text surprising."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bytepair.v1 import context_pb2

from bytepair_client._call import Call, method
from bytepair_client._operations.common import (
    CODE_POINT,
    set_encoding,
    set_one_text,
)
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    chosen_timeout,
)

INSPECT = method(context_pb2.InspectResponse, "Inspect")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a text that makes its count, or an answer to it, surprising.

    Attributes:
        code: What it is, such as "TRAILING_WHITESPACE"; `FindingCode` in the API has all.
        start: Where it starts, in code points.
        end: Where it ends.
        token_id: Of the token at fault; None where it is none.
        token: The special token that is spelled, or nearly; "" elsewhere.
        code_point: Of the character at fault; None where it is none.
    """

    code: str
    start: int
    end: int
    token_id: int | None
    token: str
    code_point: int | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in a text.

    Attributes:
        findings: In the order of the text; at most a thousand.
        totals: How many there are of each code that occurs.
        count: The tokens of the text.
        stable_tokens: How many of them are the same whatever text follows.
        stable_end: Where these end, in code points.
    """

    findings: list[Finding]
    totals: Mapping[str, int]
    count: int
    stable_tokens: int
    stable_end: int


def inspect(
    defaults: Defaults,
    text: str,
    *,
    encoding: str | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[context_pb2.InspectResponse, Inspection]:
    """Find what in a text makes its count, or an answer to it, surprising. Nothing is changed.

    The other arguments are those of `encode`.

    Args:
        text: Any text that fits a request.
    Returns:
        What was found, with the count, and the tokens that no further text changes.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    request = context_pb2.InspectRequest(unit=CODE_POINT)
    set_encoding(request, defaults, encoding, expected_fingerprint)
    set_one_text(request, text)
    return Call(INSPECT, request, chosen_timeout(defaults, timeout), _inspection)


def _inspection(answer: context_pb2.InspectResponse) -> Inspection:
    return Inspection(
        [
            Finding(
                _code(each.code),
                each.start,
                each.end,
                each.token_id if each.HasField("token_id") else None,
                each.token,
                each.code_point or None,
            )
            for each in answer.findings
        ],
        {_code(each.code): each.total for each in answer.totals},
        answer.count,
        answer.stable_tokens,
        answer.stable_end,
    )


def _code(code: context_pb2.FindingCode) -> str:
    return context_pb2.FindingCode.Name(code).removeprefix("FINDING_CODE_")
