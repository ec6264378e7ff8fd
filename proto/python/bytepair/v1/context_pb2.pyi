from bytepair.v1 import text_pb2 as _text_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CutLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CUT_LEVEL_UNSPECIFIED: _ClassVar[CutLevel]
    CUT_LEVEL_CODE_POINT: _ClassVar[CutLevel]
    CUT_LEVEL_GRAPHEME: _ClassVar[CutLevel]
    CUT_LEVEL_WORD: _ClassVar[CutLevel]
    CUT_LEVEL_SENTENCE: _ClassVar[CutLevel]
    CUT_LEVEL_LINE: _ClassVar[CutLevel]
    CUT_LEVEL_PARAGRAPH: _ClassVar[CutLevel]

class Keep(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEEP_UNSPECIFIED: _ClassVar[Keep]
    KEEP_START: _ClassVar[Keep]
    KEEP_END: _ClassVar[Keep]
    KEEP_BOTH: _ClassVar[Keep]

class FindingCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINDING_CODE_UNSPECIFIED: _ClassVar[FindingCode]
    FINDING_CODE_TRAILING_WHITESPACE: _ClassVar[FindingCode]
    FINDING_CODE_UNSTABLE_TAIL: _ClassVar[FindingCode]
    FINDING_CODE_SPECIAL_TOKEN_SPELLED: _ClassVar[FindingCode]
    FINDING_CODE_SPECIAL_TOKEN_LOOKALIKE: _ClassVar[FindingCode]
    FINDING_CODE_NOT_NFC: _ClassVar[FindingCode]
    FINDING_CODE_INVISIBLE_CHARACTER: _ClassVar[FindingCode]
    FINDING_CODE_TAG_CHARACTER: _ClassVar[FindingCode]
    FINDING_CODE_BIDI_CONTROL: _ClassVar[FindingCode]
    FINDING_CODE_REPLACEMENT_CHARACTER: _ClassVar[FindingCode]
    FINDING_CODE_CONTROL_CHARACTER: _ClassVar[FindingCode]
    FINDING_CODE_FLAGGED_TOKEN: _ClassVar[FindingCode]
    FINDING_CODE_UNKNOWN_TOKEN: _ClassVar[FindingCode]
    FINDING_CODE_LONG_RUN: _ClassVar[FindingCode]
CUT_LEVEL_UNSPECIFIED: CutLevel
CUT_LEVEL_CODE_POINT: CutLevel
CUT_LEVEL_GRAPHEME: CutLevel
CUT_LEVEL_WORD: CutLevel
CUT_LEVEL_SENTENCE: CutLevel
CUT_LEVEL_LINE: CutLevel
CUT_LEVEL_PARAGRAPH: CutLevel
KEEP_UNSPECIFIED: Keep
KEEP_START: Keep
KEEP_END: Keep
KEEP_BOTH: Keep
FINDING_CODE_UNSPECIFIED: FindingCode
FINDING_CODE_TRAILING_WHITESPACE: FindingCode
FINDING_CODE_UNSTABLE_TAIL: FindingCode
FINDING_CODE_SPECIAL_TOKEN_SPELLED: FindingCode
FINDING_CODE_SPECIAL_TOKEN_LOOKALIKE: FindingCode
FINDING_CODE_NOT_NFC: FindingCode
FINDING_CODE_INVISIBLE_CHARACTER: FindingCode
FINDING_CODE_TAG_CHARACTER: FindingCode
FINDING_CODE_BIDI_CONTROL: FindingCode
FINDING_CODE_REPLACEMENT_CHARACTER: FindingCode
FINDING_CODE_CONTROL_CHARACTER: FindingCode
FINDING_CODE_FLAGGED_TOKEN: FindingCode
FINDING_CODE_UNKNOWN_TOKEN: FindingCode
FINDING_CODE_LONG_RUN: FindingCode

class TextRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class TruncateRequest(_message.Message):
    __slots__ = ("encoding", "text", "max_tokens", "keep", "level", "marker", "start_percent", "allowed_special", "disallowed_special", "add_special_tokens", "count_original", "unit", "ranges_only", "expected_fingerprint", "is_part")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MARKER_FIELD_NUMBER: _ClassVar[int]
    START_PERCENT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COUNT_ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    RANGES_ONLY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    IS_PART_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    text: str
    max_tokens: int
    keep: Keep
    level: CutLevel
    marker: str
    start_percent: int
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    add_special_tokens: bool
    count_original: bool
    unit: _text_pb2.OffsetUnit
    ranges_only: bool
    expected_fingerprint: str
    is_part: bool
    def __init__(self, encoding: _Optional[str] = ..., text: _Optional[str] = ..., max_tokens: _Optional[int] = ..., keep: _Optional[_Union[Keep, str]] = ..., level: _Optional[_Union[CutLevel, str]] = ..., marker: _Optional[str] = ..., start_percent: _Optional[int] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., add_special_tokens: bool = ..., count_original: bool = ..., unit: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., ranges_only: bool = ..., expected_fingerprint: _Optional[str] = ..., is_part: bool = ...) -> None: ...

class TruncateResponse(_message.Message):
    __slots__ = ("text", "truncated", "count", "kept", "original_count", "level", "encoding", "fingerprint")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    text: str
    truncated: bool
    count: int
    kept: _containers.RepeatedCompositeFieldContainer[TextRange]
    original_count: int
    level: CutLevel
    encoding: str
    fingerprint: str
    def __init__(self, text: _Optional[str] = ..., truncated: bool = ..., count: _Optional[int] = ..., kept: _Optional[_Iterable[_Union[TextRange, _Mapping]]] = ..., original_count: _Optional[int] = ..., level: _Optional[_Union[CutLevel, str]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class BatchTruncateRequest(_message.Message):
    __slots__ = ("encoding", "items", "max_tokens", "keep", "level", "marker", "start_percent", "allowed_special", "disallowed_special", "add_special_tokens", "count_original", "unit", "ranges_only", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MARKER_FIELD_NUMBER: _ClassVar[int]
    START_PERCENT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COUNT_ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    RANGES_ONLY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    items: _containers.RepeatedCompositeFieldContainer[_text_pb2.TextItem]
    max_tokens: int
    keep: Keep
    level: CutLevel
    marker: str
    start_percent: int
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    add_special_tokens: bool
    count_original: bool
    unit: _text_pb2.OffsetUnit
    ranges_only: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_text_pb2.TextItem, _Mapping]]] = ..., max_tokens: _Optional[int] = ..., keep: _Optional[_Union[Keep, str]] = ..., level: _Optional[_Union[CutLevel, str]] = ..., marker: _Optional[str] = ..., start_percent: _Optional[int] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., add_special_tokens: bool = ..., count_original: bool = ..., unit: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., ranges_only: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class TruncateResult(_message.Message):
    __slots__ = ("text", "truncated", "count", "kept", "original_count", "level", "error")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    text: str
    truncated: bool
    count: int
    kept: _containers.RepeatedCompositeFieldContainer[TextRange]
    original_count: int
    level: CutLevel
    error: _text_pb2.Error
    def __init__(self, text: _Optional[str] = ..., truncated: bool = ..., count: _Optional[int] = ..., kept: _Optional[_Iterable[_Union[TextRange, _Mapping]]] = ..., original_count: _Optional[int] = ..., level: _Optional[_Union[CutLevel, str]] = ..., error: _Optional[_Union[_text_pb2.Error, _Mapping]] = ...) -> None: ...

class BatchTruncateResponse(_message.Message):
    __slots__ = ("results", "encoding", "fingerprint")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TruncateResult]
    encoding: str
    fingerprint: str
    def __init__(self, results: _Optional[_Iterable[_Union[TruncateResult, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class SplitRequest(_message.Message):
    __slots__ = ("encoding", "text", "max_tokens", "overlap_tokens", "level", "min_fill_percent", "allowed_special", "disallowed_special", "add_special_tokens", "unit", "with_text", "with_ids", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MIN_FILL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    WITH_TEXT_FIELD_NUMBER: _ClassVar[int]
    WITH_IDS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    text: str
    max_tokens: int
    overlap_tokens: int
    level: CutLevel
    min_fill_percent: int
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    add_special_tokens: bool
    unit: _text_pb2.OffsetUnit
    with_text: bool
    with_ids: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., text: _Optional[str] = ..., max_tokens: _Optional[int] = ..., overlap_tokens: _Optional[int] = ..., level: _Optional[_Union[CutLevel, str]] = ..., min_fill_percent: _Optional[int] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., add_special_tokens: bool = ..., unit: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., with_text: bool = ..., with_ids: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("start", "end", "count", "end_level", "overlap", "text", "ids")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    END_LEVEL_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    count: int
    end_level: CutLevel
    overlap: int
    text: str
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., count: _Optional[int] = ..., end_level: _Optional[_Union[CutLevel, str]] = ..., overlap: _Optional[int] = ..., text: _Optional[str] = ..., ids: _Optional[_Iterable[int]] = ...) -> None: ...

class SplitResponse(_message.Message):
    __slots__ = ("chunks", "encoding", "fingerprint")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    encoding: str
    fingerprint: str
    def __init__(self, chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class SplitStreamConfig(_message.Message):
    __slots__ = ("encoding", "max_tokens", "overlap_tokens", "level", "min_fill_percent", "allowed_special", "disallowed_special", "add_special_tokens", "unit", "with_text", "with_ids", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MIN_FILL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    WITH_TEXT_FIELD_NUMBER: _ClassVar[int]
    WITH_IDS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    max_tokens: int
    overlap_tokens: int
    level: CutLevel
    min_fill_percent: int
    allowed_special: _containers.RepeatedScalarFieldContainer[str]
    disallowed_special: _text_pb2.DisallowedSpecial
    add_special_tokens: bool
    unit: _text_pb2.OffsetUnit
    with_text: bool
    with_ids: bool
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., max_tokens: _Optional[int] = ..., overlap_tokens: _Optional[int] = ..., level: _Optional[_Union[CutLevel, str]] = ..., min_fill_percent: _Optional[int] = ..., allowed_special: _Optional[_Iterable[str]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., add_special_tokens: bool = ..., unit: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., with_text: bool = ..., with_ids: bool = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class SplitStreamRequest(_message.Message):
    __slots__ = ("config", "text", "data")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    config: SplitStreamConfig
    text: str
    data: bytes
    def __init__(self, config: _Optional[_Union[SplitStreamConfig, _Mapping]] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class SplitStreamResponse(_message.Message):
    __slots__ = ("chunks", "bytes_consumed", "pending_bytes", "finished", "encoding", "fingerprint")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    BYTES_CONSUMED_FIELD_NUMBER: _ClassVar[int]
    PENDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    bytes_consumed: int
    pending_bytes: int
    finished: bool
    encoding: str
    fingerprint: str
    def __init__(self, chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ..., bytes_consumed: _Optional[int] = ..., pending_bytes: _Optional[int] = ..., finished: bool = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class InspectRequest(_message.Message):
    __slots__ = ("encoding", "text", "codes", "unit", "max_findings", "expected_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MAX_FINDINGS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    text: str
    codes: _containers.RepeatedScalarFieldContainer[FindingCode]
    unit: _text_pb2.OffsetUnit
    max_findings: int
    expected_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., text: _Optional[str] = ..., codes: _Optional[_Iterable[_Union[FindingCode, str]]] = ..., unit: _Optional[_Union[_text_pb2.OffsetUnit, str]] = ..., max_findings: _Optional[int] = ..., expected_fingerprint: _Optional[str] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("code", "start", "end", "token_id", "token", "code_point")
    CODE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CODE_POINT_FIELD_NUMBER: _ClassVar[int]
    code: FindingCode
    start: int
    end: int
    token_id: int
    token: str
    code_point: int
    def __init__(self, code: _Optional[_Union[FindingCode, str]] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., token_id: _Optional[int] = ..., token: _Optional[str] = ..., code_point: _Optional[int] = ...) -> None: ...

class FindingTotal(_message.Message):
    __slots__ = ("code", "total")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    code: FindingCode
    total: int
    def __init__(self, code: _Optional[_Union[FindingCode, str]] = ..., total: _Optional[int] = ...) -> None: ...

class InspectResponse(_message.Message):
    __slots__ = ("findings", "totals", "count", "stable_tokens", "stable_end", "encoding", "fingerprint")
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    STABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STABLE_END_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    totals: _containers.RepeatedCompositeFieldContainer[FindingTotal]
    count: int
    stable_tokens: int
    stable_end: int
    encoding: str
    fingerprint: str
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ..., totals: _Optional[_Iterable[_Union[FindingTotal, _Mapping]]] = ..., count: _Optional[int] = ..., stable_tokens: _Optional[int] = ..., stable_end: _Optional[int] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...
