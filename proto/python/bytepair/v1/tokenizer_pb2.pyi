from bytepair.v1 import context_pb2 as _context_pb2
from bytepair.v1 import encoding_pb2 as _encoding_pb2
from bytepair.v1 import stream_pb2 as _stream_pb2
from bytepair.v1 import text_pb2 as _text_pb2
from bytepair.v1 import token_pb2 as _token_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EncodeRequest(_message.Message):
    __slots__ = ("encoding", "text", "segments", "allowed_special", "disallowed_special", "offsets", "expected_fingerprint", "add_special_tokens")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    text: str
    segments: _containers.RepeatedCompositeFieldContainer[_text_pb2.Segment]
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    offsets: _text_pb2.OffsetUnit
    expected_fingerprint: str
    add_special_tokens: bool
    def __init__(self, encoding: _Optional[str] = ..., text: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[_text_pb2.Segment, _Mapping]]] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., offsets: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class EncodeResponse(_message.Message):
    __slots__ = ("ids", "offsets", "encoding", "fingerprint")
    IDS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    encoding: str
    fingerprint: str
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., offsets: _Optional[_Iterable[int]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class DecodeRequest(_message.Message):
    __slots__ = ("encoding", "ids", "errors", "skip_special_tokens", "as_bytes", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    SKIP_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AS_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    ids: _containers.RepeatedScalarFieldContainer[int]
    errors: _text_pb2.DecodeErrors
    skip_special_tokens: bool
    as_bytes: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., ids: _Optional[_Iterable[int]] = ..., errors: _Optional[_Union[_text_pb2.DecodeErrors, str]] = ..., skip_special_tokens: bool = ..., as_bytes: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class DecodeResponse(_message.Message):
    __slots__ = ("text", "data", "encoding", "fingerprint")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    text: str
    data: bytes
    encoding: str
    fingerprint: str
    def __init__(self, text: _Optional[str] = ..., data: _Optional[bytes] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class CountRequest(_message.Message):
    __slots__ = ("encoding", "text", "segments", "allowed_special", "disallowed_special", "limit", "expected_fingerprint", "add_special_tokens")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    text: str
    segments: _containers.RepeatedCompositeFieldContainer[_text_pb2.Segment]
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    limit: int
    expected_fingerprint: str
    add_special_tokens: bool
    def __init__(self, encoding: _Optional[str] = ..., text: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[_text_pb2.Segment, _Mapping]]] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., limit: _Optional[int] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class CountResponse(_message.Message):
    __slots__ = ("count", "limit_exceeded", "encoding", "fingerprint")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    count: int
    limit_exceeded: bool
    encoding: str
    fingerprint: str
    def __init__(self, count: _Optional[int] = ..., limit_exceeded: bool = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class BatchEncodeRequest(_message.Message):
    __slots__ = ("encoding", "items", "allowed_special", "disallowed_special", "offsets", "expected_fingerprint", "add_special_tokens")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    items: _containers.RepeatedCompositeFieldContainer[_text_pb2.TextItem]
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    offsets: _text_pb2.OffsetUnit
    expected_fingerprint: str
    add_special_tokens: bool
    def __init__(self, encoding: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_text_pb2.TextItem, _Mapping]]] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., offsets: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class EncodeResult(_message.Message):
    __slots__ = ("ids", "offsets", "error")
    IDS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    error: _text_pb2.Error
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., offsets: _Optional[_Iterable[int]] = ..., error: _Optional[_Union[_text_pb2.Error, _Mapping]] = ...) -> None: ...

class BatchEncodeResponse(_message.Message):
    __slots__ = ("results", "encoding", "fingerprint")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EncodeResult]
    encoding: str
    fingerprint: str
    def __init__(self, results: _Optional[_Iterable[_Union[EncodeResult, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class IdsItem(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class BatchDecodeRequest(_message.Message):
    __slots__ = ("encoding", "items", "errors", "skip_special_tokens", "as_bytes", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    SKIP_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AS_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    items: _containers.RepeatedCompositeFieldContainer[IdsItem]
    errors: _text_pb2.DecodeErrors
    skip_special_tokens: bool
    as_bytes: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., items: _Optional[_Iterable[_Union[IdsItem, _Mapping]]] = ..., errors: _Optional[_Union[_text_pb2.DecodeErrors, str]] = ..., skip_special_tokens: bool = ..., as_bytes: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class DecodeResult(_message.Message):
    __slots__ = ("text", "data", "error")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    text: str
    data: bytes
    error: _text_pb2.Error
    def __init__(self, text: _Optional[str] = ..., data: _Optional[bytes] = ..., error: _Optional[_Union[_text_pb2.Error, _Mapping]] = ...) -> None: ...

class BatchDecodeResponse(_message.Message):
    __slots__ = ("results", "encoding", "fingerprint")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[DecodeResult]
    encoding: str
    fingerprint: str
    def __init__(self, results: _Optional[_Iterable[_Union[DecodeResult, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class BatchCountRequest(_message.Message):
    __slots__ = ("encoding", "items", "allowed_special", "disallowed_special", "limit", "expected_fingerprint", "add_special_tokens")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    items: _containers.RepeatedCompositeFieldContainer[_text_pb2.TextItem]
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    limit: int
    expected_fingerprint: str
    add_special_tokens: bool
    def __init__(self, encoding: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_text_pb2.TextItem, _Mapping]]] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., limit: _Optional[int] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class CountResult(_message.Message):
    __slots__ = ("count", "limit_exceeded", "error")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    count: int
    limit_exceeded: bool
    error: _text_pb2.Error
    def __init__(self, count: _Optional[int] = ..., limit_exceeded: bool = ..., error: _Optional[_Union[_text_pb2.Error, _Mapping]] = ...) -> None: ...

class BatchCountResponse(_message.Message):
    __slots__ = ("results", "encoding", "fingerprint")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CountResult]
    encoding: str
    fingerprint: str
    def __init__(self, results: _Optional[_Iterable[_Union[CountResult, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class ListEncodingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListEncodingsResponse(_message.Message):
    __slots__ = ("encodings",)
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    encodings: _containers.RepeatedCompositeFieldContainer[_encoding_pb2.Encoding]
    def __init__(self, encodings: _Optional[_Iterable[_Union[_encoding_pb2.Encoding, _Mapping]]] = ...) -> None: ...

class GetEncodingRequest(_message.Message):
    __slots__ = ("encoding",)
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    def __init__(self, encoding: _Optional[str] = ...) -> None: ...

class GetEncodingResponse(_message.Message):
    __slots__ = ("encoding",)
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    encoding: _encoding_pb2.Encoding
    def __init__(self, encoding: _Optional[_Union[_encoding_pb2.Encoding, _Mapping]] = ...) -> None: ...
