"""The types that methods return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class IdsWithOffsets(NamedTuple):
    """Token ids, and the offset at which each starts: `offsets[i]` belongs to `ids[i]`."""

    ids: list[int]
    offsets: list[int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Where it starts, in code points of the text.
        end: Where it ends, exclusive.
        count: The number of its tokens.
        level: The coarsest level that has a boundary at its end, such as "sentence".
        overlap: The number of tokens that it shares with the chunk before it.
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
    """A part of a text that makes its count, or a model's reply to it, surprising.

    Attributes:
        code: The kind, such as "TRAILING_WHITESPACE"; `FindingCode` in the API lists all.
        start: Where it starts, in code points.
        end: Where it ends, exclusive.
        token_id: The id of the token; None if the finding is not about a token.
        token: The special token that is spelled, exactly or nearly; otherwise "".
        code_point: The character; None if the finding is not about a character.
    """

    code: str
    start: int
    end: int
    token_id: int | None
    token: str
    code_point: int | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings in a text.

    Attributes:
        findings: In the order of the text; at most a thousand.
        totals: The number of findings of each code.
        count: The number of tokens of the text.
        stable_tokens: The number of tokens at the start that no further text changes.
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
        aliases: Its other names, sorted.
        fingerprint: "sha256:" and 64 hexadecimal digits over everything that determines ids. Equal
            fingerprints mean equal ids for every text.
        n_vocab: One more than the largest token id.
        max_token_id: The largest token id, special tokens included.
        pattern: The regular expression that splits text into pre-tokens.
        special_tokens: The id of each special token, in the order of ids.
        source: "builtin"; "builtin:" and the built-in encoding that it extends; or "file:" and a
            path on the server.
        backend: "native" or "reference". Both give the same ids.
        splitter: The implementation of the pattern. All give the same pre-tokens.
        template_before: The tokens that `add_special_tokens` adds before a text, by spelling.
        template_after: The tokens that it adds after a text.
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
        fingerprint: "sha256:" and 64 hexadecimal digits over everything that determines the
            rendering.
        source: The published rendering that it follows: repository, file and revision.
        audience: The models that use it.
        is_exact: Whether counts can be exact; otherwise they are estimates.
        encodes: Whether `encode_chat` supports it.
        control_tokens: The control tokens that it may write, sorted.
        roles: The roles that messages may have.
        fields: The optional fields that messages may have, sorted.
        tools: Whether it supports tools.
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
    """A part of a token: an initial unit, or the result of a merge.

    Attributes:
        spelling: As in the vocabulary; the decoded text may differ.
        id: The token id; None if the part is not a token.
        order: The rank, priority or score of the merge of its two halves; None for a unit.
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
        data: The bytes that it decodes to inside a text.
        kind: "ordinary", "byte", "special" or "unknown".
        order: The meaning of the parts' `order`: "rank", "priority" or "score".
        parts: The initial units, then the result of each merge; () if no merges make the token, or
            if it is longer than 1,024 bytes.
    """

    data: bytes
    kind: str
    order: str
    parts: tuple[TokenPart, ...]


def described(kind: type[T], message: Any, /, **others: Any) -> T:
    """Make a dataclass from `others` and the fields of `message` with the same names. Repeated
    fields become tuples, unset ones None."""
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
