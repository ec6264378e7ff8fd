"""Arguments of methods: their types, their checks, and how a request holds text and ids."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from bytepair_client._errors import InvalidOption, InvalidUtf8, UnknownTokenId

MAX_TOKEN_ID: Final = 2**32 - 1
BYTES_PER_ID: Final = 4  # as the server counts them: an average token of English text


class NotGiven(enum.Enum):
    """The type of NOT_GIVEN, the default of arguments for which None has another meaning."""

    NOT_GIVEN = "<client's default>"

    def __repr__(self) -> str:
        return self.value


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
Timeout = float | None | NotGiven
Fingerprint = str | None | NotGiven


@dataclass(frozen=True, slots=True)
class Defaults:
    """The client's defaults for arguments of its methods."""

    encoding: str | None  # None if each call must name one
    expected_fingerprint: str | None  # of `encoding`; None for any
    timeout: float | None  # seconds; None for no deadline
    max_unary_bytes: int  # larger inputs are streamed


def invalid(field: str, problem: str) -> InvalidOption:
    """An InvalidOption that the client raises before it sends anything."""
    return InvalidOption(f"{field}: {problem}", metadata={"field": field})


def utf8(field: str, value: str, which: str = "") -> str:
    """Return `value`; `which` says in a TypeError which value of the field it is.

    Raises:
        TypeError: It is not a str.
        InvalidOption: It holds a lone surrogate, as arguments of a command may.
    """
    if not isinstance(value, str):
        raise TypeError(f"{field}{which} must be a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(field, "not UTF-8") from None
    return value


def not_bytes(value: Any) -> Any:
    """Return `value`. Raises TypeError for bytes, which protobuf would read as UTF-8 for a str."""
    if isinstance(value, bytes):
        raise TypeError("bytes are no str")
    return value


def positive(field: str, value: float | None, *, none: str, most: float = 1e9) -> float | None:
    """Return `value` if it is positive and at most `most`, or None. `none` says in the error what
    None means. gRPC treats a deadline centuries ahead as already passed."""
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise TypeError(f"{field} must be a number or None, not {type(value).__name__}")
    if value is not None and not 0 < value <= most:
        raise invalid(field, f"must be a number above 0 and at most {most:.0f}, or None for {none}")
    return value


def chosen_timeout(default: float | None, timeout: Timeout) -> float | None:
    """The timeout of a call or a whole stream in seconds; None for no deadline."""
    return default if timeout is NOT_GIVEN else positive("timeout", timeout, none="no deadline")


def checked_size(field: str, size: int, *, most: float = math.inf) -> int:
    """Return `size` if it is at least 1 and at most `most`."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{field} must be an int, not {type(size).__name__}")
    if size < 1:
        raise invalid(field, "must be at least 1")
    if size > most:
        raise invalid(field, f"must be at most {most}")
    return size


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A special token for `Segments`; `special` is another name.

    Raises:
        InvalidOption: `token` is empty or not UTF-8, so no encoding has it.

    >>> Segments([special("<|im_start|>"), "user\\n", "Hello"])
    Segments([SpecialToken(token='<|im_start|>'), 'user\\n', 'Hello'])
    """

    token: str

    def __post_init__(self) -> None:
        if not utf8("token", self.token):
            raise invalid("token", "must not be empty")


special = SpecialToken


class Segments(tuple[str | SpecialToken, ...]):
    """One text as a list of strings, which are untrusted, and special tokens, made by `special`.

    The strings never become control tokens, not even together. Each segment is encoded by itself:
    no merge crosses a boundary.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[str | SpecialToken] = ()) -> Self:
        """Raises TypeError if `parts` is one string, whose characters would be the segments."""
        return super().__new__(cls, checked_iterable("parts of Segments", parts))

    def __repr__(self) -> str:
        return f"Segments({list(self)!r})"


Text = str | Segments
AllowedSpecial = Collection[str] | Literal["all"]
DisallowedSpecial = Collection[str] | Literal["all"]


def set_text(message: Any, text: Text, name: str = "text") -> None:
    """Set `text` in a message, or `segments` if `text` is Segments.

    Raises InvalidUtf8 for a lone surrogate, TypeError, with `name`, if `text` is neither.
    """
    if isinstance(text, str):
        try:
            message.text = text
        except UnicodeEncodeError as error:
            raise lone_surrogate(text, error.start, 0) from None
        return
    if not isinstance(text, Segments):
        advice = ""
        if isinstance(text, bytes | bytearray):
            advice = ": decode it first, such as by data.decode()"
        elif isinstance(text, list | tuple):
            advice = (
                ". Many texts go to count_batch or encode_batch; Segments([...]) is one text in "
                "several parts"
            )
        raise TypeError(f"{name} must be a str or Segments, not {type(text).__name__}{advice}")
    for index, segment in enumerate(text):
        if isinstance(segment, SpecialToken):
            message.segments.add(special_token=segment.token)
        elif isinstance(segment, str):
            try:
                message.segments.add(text=segment)
            except UnicodeEncodeError as error:
                before = "".join(each.text or each.special_token for each in message.segments)
                raise lone_surrogate(segment, error.start, len(before.encode())) from None
        else:
            raise TypeError(
                f"{name}: segment {index} must be a str or special(...), not "
                f"{type(segment).__name__}"
            )


def lone_surrogate(
    text: str, index: int, bytes_before: int = 0, name: str = "the text"
) -> InvalidUtf8:
    """The error for the lone surrogate `text[index]`; `bytes_before` precede `text`."""
    offset = bytes_before + len(text[:index].encode())
    return InvalidUtf8(
        f"{name} holds a lone surrogate at byte {offset}", metadata={"byte_offset": str(offset)}
    )


def checked_iterable(name: str, values: Any) -> Any:
    """Return `values`. Raises TypeError, with `name`, if it is a str or bytes or not iterable."""
    if isinstance(values, str | bytes | bytearray):
        raise TypeError(f"{name} must be a list of items, not one {type(values).__name__}")
    if not any(hasattr(values, each) for each in ("__iter__", "__aiter__", "__getitem__")):
        raise TypeError(f"{name} must be a list or another iterable, not {type(values).__name__}")
    return values


def listed_ids(ids: Iterable[int], name: str = "ids") -> Sequence[int]:
    """`ids` as a list or tuple. Raises TypeError, with `name`, if it is bytes or not iterable."""
    try:
        return ids if isinstance(ids, list | tuple) else list(checked_iterable(name, ids))
    except TypeError:
        raise TypeError(f"{name} must be a list of integers, not {type(ids).__name__}") from None


def set_ids(field: MutableSequence[int], ids: Iterable[int], name: str = "ids") -> None:
    """Append `ids` to a field. Raises UnknownTokenId if one is out of range, TypeError, with
    `name`, if one is not an integer."""
    ids = listed_ids(ids, name)
    try:
        field.extend(ids)
    except TypeError:
        is_batch = name == "ids" and isinstance(ids[0], list | tuple)
        remedy = "; decode_batch takes lists" if is_batch else ""
        raise TypeError(f"{name} must be a list of integers{remedy}") from None
    except ValueError:
        for index, token_id in enumerate(ids):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                raise unknown_id(token_id, index) from None
        raise


def unknown_id(token_id: int, index: int) -> UnknownTokenId:
    """The error for an id that is out of range."""
    return UnknownTokenId(
        f"no token has id {token_id}, which is at index {index}",
        metadata={"id": str(token_id), "index": str(index)},
    )
