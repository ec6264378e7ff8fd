"""Settings of chat templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from bytepair_server.config.types import STRICT, File

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]


class ChatFormatTable(BaseModel):
    """`[[chat_formats]]`: a chat format by a template.

    Attributes:
        name: The format's name.
        file: A tokenizer_config.json, or a template.
        sha256: The SHA-256 of the file; None for any.
        template: The name of the template, if the file has several.
        encodings: Canonical names of its encodings; empty: any.
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
