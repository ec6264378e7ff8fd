"""The tables of the file, which neither flags nor variables can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from bytepair_server.config.types import STRICT, File, Number, Whole

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
_CERTIFICATE_NAME: Final = re.compile(r"(?:dns:[^\s*]+|uri:\S+)")


def _special_tokens(value: object) -> object:
    if value == "ALL" or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return value
    raise ValueError('must be "ALL" or a list of special tokens')


def _certificate_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _CERTIFICATE_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} must be 'dns:' and a host name without wildcard, or 'uri:' and a URI"
            )
    return names


#: Special tokens by encoding; "ALL" is every special token of the encoding. Under "formats" the
#: chat formats that may be encoded.
Ceiling = Mapping[
    str, Annotated[Literal["ALL"] | tuple[str, ...], BeforeValidator(_special_tokens)]
]


class CallerTable(BaseModel):
    """`[callers.<name>]`: a caller, apart from its API keys.

    Attributes:
        group: The group whose ceiling and quotas apply unless it has its own; None for no group.
        certificates: Names in client certificates that identify it: "dns:…" and "uri:…".
    """

    model_config = STRICT

    group: Annotated[str, Field(min_length=1)] | None = None
    certificates: Annotated[tuple[str, ...], AfterValidator(_certificate_names)] = ()


#: The limits of quotas that belong together: the first of each decides which table they come from.
LIMITS_TOGETHER: Final = (
    ("requests_per_second", "request_burst"),
    ("input_bytes_per_second", "input_burst_bytes"),
    ("concurrent_requests",),
    ("open_streams",),
)


class QuotaTable(BaseModel):
    """`[quotas.<name>]`: how much a caller may use. None: the value of its group, else of
    `default`, else no limit.

    Attributes:
        requests_per_second: Calls, streams among them, in the long run.
        request_burst: Capacity of the token bucket, in calls; one second's rate if None.
        input_bytes_per_second: Bytes of request messages, in the long run.
        input_burst_bytes: Capacity of the token bucket, in bytes; one second's rate if None.
        concurrent_requests: Calls that are being read or answered, without streams.
        open_streams: Streams that are open.
    """

    model_config = STRICT

    requests_per_second: Annotated[Number, Field(ge=1e-9, le=1e9)] | None = None
    request_burst: Annotated[Whole, Field(ge=1, le=10**9)] | None = None
    input_bytes_per_second: Annotated[Number, Field(ge=1e-9, le=1e15)] | None = None
    input_burst_bytes: Annotated[Whole, Field(ge=1, le=10**15)] | None = None
    concurrent_requests: Annotated[Whole, Field(ge=1, le=1 << 20)] | None = None
    open_streams: Annotated[Whole, Field(ge=0, le=1 << 20)] | None = None

    @model_validator(mode="after")
    def _burst_of_a_rate(self) -> QuotaTable:
        for rate, *bursts in LIMITS_TOGETHER:
            for burst in bursts:
                if getattr(self, burst) is not None and getattr(self, rate) is None:
                    raise ValueError(f"{burst} needs {rate}")
        return self


class ChatFormatTable(BaseModel):
    """`[[chat_formats]]`: a chat format by a template.

    Attributes:
        name: The format's name.
        file: A tokenizer_config.json, or a template.
        sha256: The SHA-256 of the file; None for any.
        template: The name of the template, if the file has several.
        encodings: Canonical names of its encodings; empty: any with its control tokens.
        variables: Values that the template reads, beside the tokens of the file.
        options: Variables that requests may set, with their values, the default first.
        arguments: How calls' arguments reach the template: as JSON values, or as text.
    """

    model_config = STRICT

    name: _Name
    file: File
    sha256: _Sha256 | None = None
    template: str = "default"
    encodings: tuple[str, ...] = ()
    variables: Mapping[str, Any] = Field(default_factory=dict)
    options: Mapping[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    arguments: Literal["object", "text"] = "object"
