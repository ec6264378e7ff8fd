"""Types of settings, each with the error for a wrong value."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

#: In the place of an address: there is none.
NO_ADDRESS: Final = "none"

_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5})")


def split_commas(value: object) -> object:
    """The parts of a string that commas separate; anything else as it is."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def checked_grpc_address(value: str) -> str:
    """Raises ValueError unless `value` is host:port, or "unix:" and a path."""
    if value.startswith("unix:"):
        if value == "unix:":
            raise ValueError("a path must follow 'unix:'")
        return value
    split_address(value)
    return value


def checked_http_address(value: str) -> str:
    """Raises ValueError unless `value` is host:port or NO_ADDRESS."""
    if value != NO_ADDRESS:
        split_address(value)
    return value


def split_address(address: str) -> tuple[str, int]:
    """Split "host:port", where an IPv6 host stands in brackets.

    Raises:
        ValueError: `address` is not of that form, or the port is not in [0, 65535].
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65535:
        raise ValueError("must be host:port, such as 0.0.0.0:50051 (port 0: any free one)")
    return found["ipv6"] or found["host"], int(found["port"])


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Input should be a number")
    return value


def _not_empty(value: str) -> str:
    if not value:
        raise ValueError("must name a file; leave it out for none")
    return value


#: TOML tells true from 1; Python does not.
Whole = Annotated[int, BeforeValidator(_not_bool)]
Number = Annotated[float, BeforeValidator(_not_bool)]
Seconds = Number
#: As a path "" would be the working directory.
File = Annotated[str, AfterValidator(_not_empty)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]
