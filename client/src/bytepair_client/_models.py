"""What methods return beside plain values: chunks, findings, and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class IdsWithOffsets(NamedTuple):
    """Token ids and where each starts: `offsets[i]` belongs to `ids[i]`."""

    ids: list[int]
    offsets: list[int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Where it starts, in code points of the text.
        end: Where it ends.
        count: Its tokens.
        level: The coarsest level at which the text may be cut at its end, such as "sentence".
        overlap: How many tokens it shares with the chunk before it.
        text: The text from `start` to `end`, unchanged.
    """

    start: int
    end: int
    count: int
    level: str
    overlap: int
    text: str


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


@dataclass(frozen=True, slots=True)
class EncodingInfo:
    """One encoding, as the server describes it.

    Attributes:
        name: The canonical name, such as "cl100k_base".
        aliases: Other names that requests may use for it, sorted.
        fingerprint: "sha256:" and 64 hexadecimal digits over what decides ids. Equal
            fingerprints mean equal ids for every text.
        n_vocab: One more than the largest token id.
        max_token_id: The largest token id, special tokens included.
        pattern: The regular expression that splits text into pre-tokens.
        special_tokens: Spelling to id, in the order of ids.
        source: "builtin", "builtin:" and the built-in encoding that it extends, or "file:" and
            a path on the server.
        backend: "native" or "reference". The ids are the same.
        splitter: How the pattern is run. The pre-tokens are the same.
        template_before: The tokens that `add_special_tokens` adds before a text, by spelling.
        template_after: Those that it adds after a text.
    """

    name: str
    aliases: tuple[str, ...]
    fingerprint: str
    n_vocab: int
    max_token_id: int
    pattern: str
    special_tokens: Mapping[str, int]
    source: str
    backend: str
    splitter: str
    template_before: tuple[str, ...] = ()
    template_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatFormatInfo:
    """One chat format, as the server describes it.

    Attributes:
        name: Its name, such as "harmony".
        fingerprint: "sha256:" and 64 hexadecimal digits over what decides the rendering.
        source: The published rendering that it follows: a repository, a file, a revision.
        audience: The models that it is for.
        is_exact: Whether counts can be exact; otherwise they are estimates.
        encodes: Whether `encode_chat` supports it.
        control_tokens: Those that it may write, sorted.
        roles: The roles of messages.
        fields: The optional fields of a message that it supports, sorted.
        tools: Whether it supports a list of tools.
        encodings: The loaded encodings that have its control tokens, sorted.
    """

    name: str
    fingerprint: str
    source: str
    audience: str
    is_exact: bool
    encodes: bool
    control_tokens: tuple[str, ...]
    roles: tuple[str, ...]
    fields: tuple[str, ...]
    tools: bool
    encodings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenPart:
    """A part of a token while it is merged.

    Attributes:
        spelling: As in the vocabulary; its decoded text may differ.
        id: Its id; None if it is not a token.
        order: The rank, priority or score by which its two halves merged; None for a unit.
        left: The index of its left half; None for a unit.
        right: The index of its right half; None for a unit.
    """

    spelling: bytes
    id: int | None
    order: float | None
    left: int | None
    right: int | None


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """One token, as the server describes it.

    Attributes:
        data: The bytes that it decodes to within a text.
        kind: "ordinary", "byte", "special" or "unknown".
        order: The meaning of the parts' `order`: "rank", "priority" or "score".
        parts: The initial units, then the result of each merge; () if it is not merged, or longer
            than 1,024 bytes.
    """

    data: bytes
    kind: str
    order: str
    parts: tuple[TokenPart, ...]


def described(kind: type[T], message: Any, /, **others: Any) -> T:
    """A dataclass of the fields of a message that have the same names, and of `others`: lists as
    tuples, and None for what is not set."""
    for field in fields(kind):  # type: ignore[arg-type]  # T is a dataclass
        if field.name in others:
            continue
        value = getattr(message, field.name)
        if message.DESCRIPTOR.fields_by_name[field.name].has_presence:
            value = value if message.HasField(field.name) else None
        elif not isinstance(value, str | bytes | bool | int):
            value = tuple(value)
        others[field.name] = value
    return kind(**others)
