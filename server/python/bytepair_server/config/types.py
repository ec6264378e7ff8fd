"""Types of settings, and the words for a wrong value."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import ErrorDetails

#: The value of `http_address` for no HTTP port.
NO_ADDRESS: Final = "none"

#: Every table of settings: immutable, without unknown names, and no error quotes a secret.
STRICT: Final = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

#: Where pydantic's own words do not say it to an operator.
_ALLOWED: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_type": "a whole number",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "mapping_type": "a table",
    "missing": "given",
    "model_type": "a table",
    "string_too_short": "a string that is not empty",
    "string_type": "a string",
    "tuple_type": "a list",
}
# RFC 6454, section 6.2; browsers write it in lower case.
_ORIGIN: Final = re.compile(r"(?!http:.*:80$|https:.*:443$)[a-z][a-z0-9+.-]*://[^/\sA-Z]+")
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^]]+)\]|(?P<host>[^:\[\]*]+)):(?P<port>[0-9]{1,5})")


def split_commas(value: object) -> object:
    """The parts of a string that commas separate; anything else as it is."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def checked_grpc_address(value: str) -> str:
    """Raises ValueError unless `value` is host:port, or "unix:" and a path."""
    if not value.startswith("unix:") or value == "unix:":
        split_address(value, "host:port, such as 0.0.0.0:50051, or unix:/path")
    return value


def checked_http_address(value: str) -> str:
    """Raises ValueError unless `value` is host:port or NO_ADDRESS."""
    if value != NO_ADDRESS:
        split_address(value, "host:port, such as 0.0.0.0:9464, or none")
    return value


def split_address(address: str, forms: str = "host:port") -> tuple[str, int]:
    """Split "host:port", where an IPv6 host stands in brackets.

    Raises:
        ValueError: `address` is not of that form, or the port is not in [0, 65535]. The message
            lists the `forms` of the setting.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"must be {forms}; ports are 0 (any free one) to 65535")
    return found["ipv6"] or found["host"], int(found["port"])


def overlap(one: str, other: str) -> bool:
    """Whether two addresses, host:port or unix:path, cannot both be listened at."""
    if one.startswith("unix:") or other.startswith("unix:"):
        return False
    ports = {split_address(each)[1] for each in (one, other)}
    hosts = {split_address(each)[0].replace("localhost", "127.0.0.1") for each in (one, other)}
    if len(ports) > 1 or ports == {0}:
        return False
    # Listening at :: takes the port of IPv4 too, on most systems.
    has_ipv6 = any(":" in host for host in hosts)
    return len(hosts) == 1 or "::" in hosts or ("0.0.0.0" in hosts and not has_ipv6)


def checked_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """Raises ValueError unless each is "*" or as browsers write the origin of a page."""
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{origin!r} must be *, or an origin such as https://app.example:8443, without a "
                "path and without the default port"
            )
    return origins


def problem(fault: ErrorDetails) -> str:
    """What is wrong with a value: what it must be, and what it is."""
    allowed = _ALLOWED.get(fault["type"])
    if allowed is None:
        return fault["msg"].removeprefix("Value error, ")
    must = allowed.format(**fault.get("ctx", {}))
    given = fault["input"]
    return (
        f"must be {must}, not {_shown(given)}"
        if isinstance(given, str | int | float)
        else f"must be {must}"
    )


class Text(str):
    """The value of a flag or a variable, which is text whatever the type of its setting."""

    __slots__ = ()


def _number(value: object) -> object:
    if isinstance(value, bool | str) and not isinstance(value, Text):
        raise ValueError(f"must be a number, not {_shown(value)}")
    return value


def _true_or_false(value: object) -> object:
    if not isinstance(value, bool | Text):
        raise ValueError(f"must be true or false, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    """A value as TOML has it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _not_empty(value: str) -> str:
    if not value:
        raise ValueError("must name a file; leave it out for none")
    return value


def _not_tiny(seconds: float) -> float:
    if 0 < seconds < 0.1:
        raise ValueError(f"must be 0 or at least 0.1, not {seconds}")
    return seconds


#: TOML tells true from 1 and from "true"; pydantic does not.
Whole = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, BeforeValidator(_number)]
Switch = Annotated[bool, BeforeValidator(_true_or_false)]
Seconds = Number
#: Numbers of things, with a bound that no machine needs.
Positive = Annotated[Whole, Field(ge=1, le=1 << 20)]
Natural = Annotated[Whole, Field(ge=0, le=1 << 20)]
#: Seconds up to an hour.
Period = Annotated[Seconds, Field(ge=0, le=3600)]
#: Seconds up to eleven days; 0 stands for no end.
LongPeriod = Annotated[Seconds, Field(ge=0, le=1e6), AfterValidator(_not_tiny)]
#: Bytes of memory: 1 MiB to 1 TiB.
MemoryBytes = Annotated[Whole, Field(ge=1 << 20, le=1 << 40)]
#: As a path "" would be the working directory.
File = Annotated[str, AfterValidator(_not_empty)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]
