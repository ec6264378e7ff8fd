"""Settings about callers: certificates, groups, ceilings and quotas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bytepair_server.config.types import STRICT, File, Number, Whole

_CERTIFICATE_NAME: Final = re.compile(r"(?:dns:[^\s*]+|uri:\S+)")
_MODE: Final = re.compile(r"0?[0-7]{3}")


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


def _mode(value: str) -> str:
    if not _MODE.fullmatch(value):
        raise ValueError("must be three octal digits, such as 0660")
    return value


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


class QuotaTable(BaseModel):
    """`[quotas.<name>]`: how much a caller may use. None: the value of its group, else of
    `default`, else no limit.

    Attributes:
        requests_per_second: Calls, streams among them, in the long run.
        request_burst: Capacity of the token bucket, in calls; one second's rate if None.
        input_bytes_per_second: Bytes of request messages, in the long run.
        input_burst_bytes: Capacity of the token bucket, in bytes; one second's rate if None.
        concurrent_requests: Calls that are being answered, without streams.
        open_streams: Streams that are open.
    """

    model_config = STRICT

    requests_per_second: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    request_burst: Annotated[Whole, Field(ge=1, le=10**9)] | None = None
    input_bytes_per_second: Annotated[Number, Field(gt=0, le=1e15)] | None = None
    input_burst_bytes: Annotated[Whole, Field(ge=1, le=10**15)] | None = None
    concurrent_requests: Annotated[Whole, Field(ge=1, le=1 << 20)] | None = None
    open_streams: Annotated[Whole, Field(ge=0, le=1 << 20)] | None = None

    @model_validator(mode="after")
    def _burst_of_a_rate(self) -> QuotaTable:
        for burst, rate in (
            ("request_burst", "requests_per_second"),
            ("input_burst_bytes", "input_bytes_per_second"),
        ):
            if getattr(self, burst) is not None and getattr(self, rate) is None:
                raise ValueError(f"{burst} needs {rate}")
        return self


class CallerSettings(BaseModel):
    """The part of `Settings` that is about callers."""

    model_config = ConfigDict(**STRICT, use_attribute_docstrings=True)

    api_keys_file: File | None = None
    """TOML file of callers and hashes of their API keys, reloaded when it changes. None: no
    keys."""
    tls_cert_file: File | None = None
    """The server's certificate chain (PEM), reloaded when it changes. None: no TLS."""
    tls_key_file: File | None = None
    """The private key of tls_cert_file (PEM), reloaded when it changes."""
    tls_client_ca_file: File | None = None
    """Certificate authorities of clients (PEM), reloaded when it changes. Every client then needs a
    certificate. None: clients need none."""
    health_needs_caller: bool = False
    """Answer gRPC health only to known callers. Off: probes need no credentials."""
    # The user of the server's process only.
    unix_socket_mode: Annotated[str, AfterValidator(_mode)] = "0600"
    """Octal permissions of the socket's file, if grpc_address is unix:/path."""
    disallowed_special_floor: Literal["AS_TEXT", "REJECT"] = "AS_TEXT"
    """The least strict disallowed_special that a request may choose. REJECT: special tokens in text
    are always an error."""
    log_denials: bool = False
    """Log calls without valid credentials, and special tokens that the policy denies or rejects.
    Text is never logged."""
    callers: Mapping[str, CallerTable] = Field(default_factory=dict)
    """Groups and client certificates of callers, by caller. Only in the file."""
    ceiling: Mapping[str, Ceiling] = Field(default_factory=dict)
    """Special tokens that may be allowed at all, by caller or group, and encoding; under formats,
    the chat formats that EncodeChat may use. Only in the file."""
    quotas: Mapping[str, QuotaTable] = Field(default_factory=dict)
    """Quotas of each caller, by caller or group. Only in the file."""
