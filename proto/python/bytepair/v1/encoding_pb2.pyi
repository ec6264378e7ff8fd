from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SpecialToken(_message.Message):
    __slots__ = ("token", "id")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    token: str
    id: int
    def __init__(self, token: _Optional[str] = ..., id: _Optional[int] = ...) -> None: ...

class Encoding(_message.Message):
    __slots__ = ("name", "aliases", "fingerprint", "n_vocab", "max_token_id", "pattern", "special_tokens", "source", "backend", "splitter", "template_before", "template_after", "unicode_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    N_VOCAB_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    SPLITTER_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_AFTER_FIELD_NUMBER: _ClassVar[int]
    UNICODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    fingerprint: str
    n_vocab: int
    max_token_id: int
    pattern: str
    special_tokens: _containers.RepeatedCompositeFieldContainer[SpecialToken]
    source: str
    backend: str
    splitter: str
    template_before: _containers.RepeatedCompositeFieldContainer[SpecialToken]
    template_after: _containers.RepeatedCompositeFieldContainer[SpecialToken]
    unicode_version: str
    def __init__(self, name: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., fingerprint: _Optional[str] = ..., n_vocab: _Optional[int] = ..., max_token_id: _Optional[int] = ..., pattern: _Optional[str] = ..., special_tokens: _Optional[_Iterable[_Union[SpecialToken, _Mapping]]] = ..., source: _Optional[str] = ..., backend: _Optional[str] = ..., splitter: _Optional[str] = ..., template_before: _Optional[_Iterable[_Union[SpecialToken, _Mapping]]] = ..., template_after: _Optional[_Iterable[_Union[SpecialToken, _Mapping]]] = ..., unicode_version: _Optional[str] = ...) -> None: ...
