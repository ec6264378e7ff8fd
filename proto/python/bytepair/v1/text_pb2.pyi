from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DisallowedSpecial(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISALLOWED_SPECIAL_UNSPECIFIED: _ClassVar[DisallowedSpecial]
    DISALLOWED_SPECIAL_REJECT: _ClassVar[DisallowedSpecial]
    DISALLOWED_SPECIAL_AS_TEXT: _ClassVar[DisallowedSpecial]

class OffsetUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OFFSET_UNIT_UNSPECIFIED: _ClassVar[OffsetUnit]
    OFFSET_UNIT_NONE: _ClassVar[OffsetUnit]
    OFFSET_UNIT_BYTE: _ClassVar[OffsetUnit]
    OFFSET_UNIT_CODE_POINT: _ClassVar[OffsetUnit]
    OFFSET_UNIT_UTF16: _ClassVar[OffsetUnit]

class DecodeErrors(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECODE_ERRORS_UNSPECIFIED: _ClassVar[DecodeErrors]
    DECODE_ERRORS_REPLACE: _ClassVar[DecodeErrors]
    DECODE_ERRORS_STRICT: _ClassVar[DecodeErrors]
DISALLOWED_SPECIAL_UNSPECIFIED: DisallowedSpecial
DISALLOWED_SPECIAL_REJECT: DisallowedSpecial
DISALLOWED_SPECIAL_AS_TEXT: DisallowedSpecial
OFFSET_UNIT_UNSPECIFIED: OffsetUnit
OFFSET_UNIT_NONE: OffsetUnit
OFFSET_UNIT_BYTE: OffsetUnit
OFFSET_UNIT_CODE_POINT: OffsetUnit
OFFSET_UNIT_UTF16: OffsetUnit
DECODE_ERRORS_UNSPECIFIED: DecodeErrors
DECODE_ERRORS_REPLACE: DecodeErrors
DECODE_ERRORS_STRICT: DecodeErrors

class Segment(_message.Message):
    __slots__ = ("text", "special_token")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SPECIAL_TOKEN_FIELD_NUMBER: _ClassVar[int]
    text: str
    special_token: str
    def __init__(self, text: _Optional[str] = ..., special_token: _Optional[str] = ...) -> None: ...

class TextItem(_message.Message):
    __slots__ = ("text", "segments")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, text: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "reason", "message", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
