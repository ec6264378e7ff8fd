from bytepair.v1 import text_pb2 as _text_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecodeStreamConfig(_message.Message):
    __slots__ = ("encoding", "prefill_ids", "skip_special_tokens", "stop", "include_stop", "errors", "as_bytes", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    PREFILL_IDS_FIELD_NUMBER: _ClassVar[int]
    SKIP_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STOP_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    AS_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    prefill_ids: _containers.RepeatedScalarFieldContainer[int]
    skip_special_tokens: bool
    stop: _containers.RepeatedScalarFieldContainer[str]
    include_stop: bool
    errors: _text_pb2.DecodeErrors
    as_bytes: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., prefill_ids: _Optional[_Iterable[int]] = ..., skip_special_tokens: bool = ..., stop: _Optional[_Iterable[str]] = ..., include_stop: bool = ..., errors: _Optional[_Union[_text_pb2.DecodeErrors, str]] = ..., as_bytes: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class DecodeStreamRequest(_message.Message):
    __slots__ = ("config", "ids", "flush")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    FLUSH_FIELD_NUMBER: _ClassVar[int]
    config: DecodeStreamConfig
    ids: _containers.RepeatedScalarFieldContainer[int]
    flush: bool
    def __init__(self, config: _Optional[_Union[DecodeStreamConfig, _Mapping]] = ..., ids: _Optional[_Iterable[int]] = ..., flush: bool = ...) -> None: ...

class DecodeStreamResponse(_message.Message):
    __slots__ = ("text", "data", "tokens_consumed", "pending_bytes", "stop_matched", "finished", "encoding", "fingerprint")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TOKENS_CONSUMED_FIELD_NUMBER: _ClassVar[int]
    PENDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    STOP_MATCHED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    text: str
    data: bytes
    tokens_consumed: int
    pending_bytes: int
    stop_matched: str
    finished: bool
    encoding: str
    fingerprint: str
    def __init__(self, text: _Optional[str] = ..., data: _Optional[bytes] = ..., tokens_consumed: _Optional[int] = ..., pending_bytes: _Optional[int] = ..., stop_matched: _Optional[str] = ..., finished: bool = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class EncodeStreamConfig(_message.Message):
    __slots__ = ("encoding", "allowed_special", "disallowed_special", "expected_fingerprint", "add_special_tokens", "preceding_text")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PRECEDING_TEXT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    expected_fingerprint: str
    add_special_tokens: bool
    preceding_text: str
    def __init__(self, encoding: _Optional[str] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ..., preceding_text: _Optional[str] = ...) -> None: ...

class EncodeStreamRequest(_message.Message):
    __slots__ = ("config", "text", "data")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    config: EncodeStreamConfig
    text: str
    data: bytes
    def __init__(self, config: _Optional[_Union[EncodeStreamConfig, _Mapping]] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class EncodeStreamResponse(_message.Message):
    __slots__ = ("ids", "bytes_consumed", "pending_bytes", "finished", "encoding", "fingerprint")
    IDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_CONSUMED_FIELD_NUMBER: _ClassVar[int]
    PENDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    bytes_consumed: int
    pending_bytes: int
    finished: bool
    encoding: str
    fingerprint: str
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., bytes_consumed: _Optional[int] = ..., pending_bytes: _Optional[int] = ..., finished: bool = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class CountStreamConfig(_message.Message):
    __slots__ = ("encoding", "allowed_special", "disallowed_special", "limit", "expected_fingerprint", "add_special_tokens")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    limit: int
    expected_fingerprint: str
    add_special_tokens: bool
    def __init__(self, encoding: _Optional[str] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., limit: _Optional[int] = ..., expected_fingerprint: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class CountStreamRequest(_message.Message):
    __slots__ = ("config", "text", "data")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    config: CountStreamConfig
    text: str
    data: bytes
    def __init__(self, config: _Optional[_Union[CountStreamConfig, _Mapping]] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class CountStreamResponse(_message.Message):
    __slots__ = ("count", "limit_exceeded", "encoding", "fingerprint", "bytes_consumed")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    BYTES_CONSUMED_FIELD_NUMBER: _ClassVar[int]
    count: int
    limit_exceeded: bool
    encoding: str
    fingerprint: str
    bytes_consumed: int
    def __init__(self, count: _Optional[int] = ..., limit_exceeded: bool = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ..., bytes_consumed: _Optional[int] = ...) -> None: ...
