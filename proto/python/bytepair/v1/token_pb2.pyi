from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MergeOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MERGE_ORDER_UNSPECIFIED: _ClassVar[MergeOrder]
    MERGE_ORDER_RANK: _ClassVar[MergeOrder]
    MERGE_ORDER_PRIORITY: _ClassVar[MergeOrder]
    MERGE_ORDER_SCORE: _ClassVar[MergeOrder]

class TokenKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOKEN_KIND_UNSPECIFIED: _ClassVar[TokenKind]
    TOKEN_KIND_ORDINARY: _ClassVar[TokenKind]
    TOKEN_KIND_BYTE: _ClassVar[TokenKind]
    TOKEN_KIND_SPECIAL: _ClassVar[TokenKind]
    TOKEN_KIND_UNKNOWN: _ClassVar[TokenKind]
MERGE_ORDER_UNSPECIFIED: MergeOrder
MERGE_ORDER_RANK: MergeOrder
MERGE_ORDER_PRIORITY: MergeOrder
MERGE_ORDER_SCORE: MergeOrder
TOKEN_KIND_UNSPECIFIED: TokenKind
TOKEN_KIND_ORDINARY: TokenKind
TOKEN_KIND_BYTE: TokenKind
TOKEN_KIND_SPECIAL: TokenKind
TOKEN_KIND_UNKNOWN: TokenKind

class TokenPart(_message.Message):
    __slots__ = ("spelling", "id", "order", "left", "right")
    SPELLING_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    spelling: bytes
    id: int
    order: float
    left: int
    right: int
    def __init__(self, spelling: _Optional[bytes] = ..., id: _Optional[int] = ..., order: _Optional[float] = ..., left: _Optional[int] = ..., right: _Optional[int] = ...) -> None: ...

class GetTokenRequest(_message.Message):
    __slots__ = ("encoding", "id", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    id: int
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., id: _Optional[int] = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class GetTokenResponse(_message.Message):
    __slots__ = ("data", "kind", "order", "parts", "encoding", "fingerprint")
    DATA_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    kind: TokenKind
    order: MergeOrder
    parts: _containers.RepeatedCompositeFieldContainer[TokenPart]
    encoding: str
    fingerprint: str
    def __init__(self, data: _Optional[bytes] = ..., kind: _Optional[_Union[TokenKind, str]] = ..., order: _Optional[_Union[MergeOrder, str]] = ..., parts: _Optional[_Iterable[_Union[TokenPart, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...
