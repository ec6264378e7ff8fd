from bytepair.v1 import text_pb2 as _text_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Accuracy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCURACY_UNSPECIFIED: _ClassVar[Accuracy]
    ACCURACY_EXACT: _ClassVar[Accuracy]
    ACCURACY_ESTIMATE: _ClassVar[Accuracy]

class Joining(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOINING_UNSPECIFIED: _ClassVar[Joining]
    JOINING_PIECEWISE: _ClassVar[Joining]
    JOINING_RUNS: _ClassVar[Joining]

class PastReasoning(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PAST_REASONING_UNSPECIFIED: _ClassVar[PastReasoning]
    PAST_REASONING_KEEP: _ClassVar[PastReasoning]
    PAST_REASONING_BEFORE_FIRST_FINAL: _ClassVar[PastReasoning]
    PAST_REASONING_BEFORE_LAST_FINAL_IF_ANSWERED: _ClassVar[PastReasoning]
    PAST_REASONING_BEFORE_LAST_FINAL: _ClassVar[PastReasoning]
ACCURACY_UNSPECIFIED: Accuracy
ACCURACY_EXACT: Accuracy
ACCURACY_ESTIMATE: Accuracy
JOINING_UNSPECIFIED: Joining
JOINING_PIECEWISE: Joining
JOINING_RUNS: Joining
PAST_REASONING_UNSPECIFIED: PastReasoning
PAST_REASONING_KEEP: PastReasoning
PAST_REASONING_BEFORE_FIRST_FINAL: PastReasoning
PAST_REASONING_BEFORE_LAST_FINAL_IF_ANSWERED: PastReasoning
PAST_REASONING_BEFORE_LAST_FINAL: PastReasoning

class ContentPart(_message.Message):
    __slots__ = ("text", "counted_tokens", "json")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    text: str
    counted_tokens: int
    json: str
    def __init__(self, text: _Optional[str] = ..., counted_tokens: _Optional[int] = ..., json: _Optional[str] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("id", "name", "arguments_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    arguments_json: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class Tool(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class ChatMessage(_message.Message):
    __slots__ = ("role", "content", "name", "reasoning", "tool_calls", "tool_call_id", "channel", "recipient", "content_type", "constrain")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONSTRAIN_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: _containers.RepeatedCompositeFieldContainer[ContentPart]
    name: str
    reasoning: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    tool_call_id: str
    channel: str
    recipient: str
    content_type: str
    constrain: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[_Iterable[_Union[ContentPart, _Mapping]]] = ..., name: _Optional[str] = ..., reasoning: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ToolCall, _Mapping]]] = ..., tool_call_id: _Optional[str] = ..., channel: _Optional[str] = ..., recipient: _Optional[str] = ..., content_type: _Optional[str] = ..., constrain: _Optional[str] = ...) -> None: ...

class ChatOptions(_message.Message):
    __slots__ = ("add_generation_prompt", "continue_final_message", "past_reasoning", "reasoning_effort", "current_date", "format_options")
    class FormatOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ADD_GENERATION_PROMPT_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FINAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PAST_REASONING_FIELD_NUMBER: _ClassVar[int]
    REASONING_EFFORT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_DATE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    add_generation_prompt: bool
    continue_final_message: bool
    past_reasoning: PastReasoning
    reasoning_effort: str
    current_date: str
    format_options: _containers.ScalarMap[str, str]
    def __init__(self, add_generation_prompt: bool = ..., continue_final_message: bool = ..., past_reasoning: _Optional[_Union[PastReasoning, str]] = ..., reasoning_effort: _Optional[str] = ..., current_date: _Optional[str] = ..., format_options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CountChatRequest(_message.Message):
    __slots__ = ("encoding", "format", "messages", "tools", "options", "limit", "disallowed_special", "expected_fingerprint", "expected_format_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    format: str
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    options: ChatOptions
    limit: int
    disallowed_special: _text_pb2.DisallowedSpecial
    expected_fingerprint: str
    expected_format_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., format: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., options: _Optional[_Union[ChatOptions, _Mapping]] = ..., limit: _Optional[int] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., expected_fingerprint: _Optional[str] = ..., expected_format_fingerprint: _Optional[str] = ...) -> None: ...

class CountChatResponse(_message.Message):
    __slots__ = ("count", "limit_exceeded", "accuracy", "message_counts", "tools_count", "frame_count", "audience", "rule", "encoding", "fingerprint", "format", "format_fingerprint")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNTS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FRAME_COUNT_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    count: int
    limit_exceeded: bool
    accuracy: Accuracy
    message_counts: _containers.RepeatedScalarFieldContainer[int]
    tools_count: int
    frame_count: int
    audience: str
    rule: str
    encoding: str
    fingerprint: str
    format: str
    format_fingerprint: str
    def __init__(self, count: _Optional[int] = ..., limit_exceeded: bool = ..., accuracy: _Optional[_Union[Accuracy, str]] = ..., message_counts: _Optional[_Iterable[int]] = ..., tools_count: _Optional[int] = ..., frame_count: _Optional[int] = ..., audience: _Optional[str] = ..., rule: _Optional[str] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ..., format: _Optional[str] = ..., format_fingerprint: _Optional[str] = ...) -> None: ...

class ChatItem(_message.Message):
    __slots__ = ("messages", "tools")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    def __init__(self, messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ...) -> None: ...

class BatchCountChatRequest(_message.Message):
    __slots__ = ("encoding", "format", "items", "options", "limit", "disallowed_special", "expected_fingerprint", "expected_format_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    format: str
    items: _containers.RepeatedCompositeFieldContainer[ChatItem]
    options: ChatOptions
    limit: int
    disallowed_special: _text_pb2.DisallowedSpecial
    expected_fingerprint: str
    expected_format_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., format: _Optional[str] = ..., items: _Optional[_Iterable[_Union[ChatItem, _Mapping]]] = ..., options: _Optional[_Union[ChatOptions, _Mapping]] = ..., limit: _Optional[int] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., expected_fingerprint: _Optional[str] = ..., expected_format_fingerprint: _Optional[str] = ...) -> None: ...

class CountChatResult(_message.Message):
    __slots__ = ("count", "limit_exceeded", "accuracy", "error")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    count: int
    limit_exceeded: bool
    accuracy: Accuracy
    error: _text_pb2.Error
    def __init__(self, count: _Optional[int] = ..., limit_exceeded: bool = ..., accuracy: _Optional[_Union[Accuracy, str]] = ..., error: _Optional[_Union[_text_pb2.Error, _Mapping]] = ...) -> None: ...

class BatchCountChatResponse(_message.Message):
    __slots__ = ("results", "encoding", "fingerprint", "format", "format_fingerprint", "audience", "rule")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CountChatResult]
    encoding: str
    fingerprint: str
    format: str
    format_fingerprint: str
    audience: str
    rule: str
    def __init__(self, results: _Optional[_Iterable[_Union[CountChatResult, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ..., format: _Optional[str] = ..., format_fingerprint: _Optional[str] = ..., audience: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class EncodeChatRequest(_message.Message):
    __slots__ = ("encoding", "format", "messages", "tools", "options", "disallowed_special", "with_segments", "expected_fingerprint", "expected_format_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    WITH_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    format: str
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    options: ChatOptions
    disallowed_special: _text_pb2.DisallowedSpecial
    with_segments: bool
    expected_fingerprint: str
    expected_format_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., format: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., options: _Optional[_Union[ChatOptions, _Mapping]] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., with_segments: bool = ..., expected_fingerprint: _Optional[str] = ..., expected_format_fingerprint: _Optional[str] = ...) -> None: ...

class IdSpan(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class EncodeChatResponse(_message.Message):
    __slots__ = ("ids", "message_spans", "segments", "encoding", "fingerprint", "format", "format_fingerprint")
    IDS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_SPANS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    message_spans: _containers.RepeatedCompositeFieldContainer[IdSpan]
    segments: _containers.RepeatedCompositeFieldContainer[_text_pb2.Segment]
    encoding: str
    fingerprint: str
    format: str
    format_fingerprint: str
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., message_spans: _Optional[_Iterable[_Union[IdSpan, _Mapping]]] = ..., segments: _Optional[_Iterable[_Union[_text_pb2.Segment, _Mapping]]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ..., format: _Optional[str] = ..., format_fingerprint: _Optional[str] = ...) -> None: ...

class FitChatRequest(_message.Message):
    __slots__ = ("encoding", "format", "messages", "tools", "options", "max_tokens", "reserve_tokens", "keep_system", "pinned", "min_last_turns", "refill_percent", "disallowed_special", "expected_fingerprint", "expected_format_fingerprint")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RESERVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEEP_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    MIN_LAST_TURNS_FIELD_NUMBER: _ClassVar[int]
    REFILL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_SPECIAL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    encoding: str
    format: str
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    options: ChatOptions
    max_tokens: int
    reserve_tokens: int
    keep_system: bool
    pinned: _containers.RepeatedScalarFieldContainer[int]
    min_last_turns: int
    refill_percent: int
    disallowed_special: _text_pb2.DisallowedSpecial
    expected_fingerprint: str
    expected_format_fingerprint: str
    def __init__(self, encoding: _Optional[str] = ..., format: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., options: _Optional[_Union[ChatOptions, _Mapping]] = ..., max_tokens: _Optional[int] = ..., reserve_tokens: _Optional[int] = ..., keep_system: bool = ..., pinned: _Optional[_Iterable[int]] = ..., min_last_turns: _Optional[int] = ..., refill_percent: _Optional[int] = ..., disallowed_special: _Optional[_Union[_text_pb2.DisallowedSpecial, str]] = ..., expected_fingerprint: _Optional[str] = ..., expected_format_fingerprint: _Optional[str] = ...) -> None: ...

class FitChatResponse(_message.Message):
    __slots__ = ("kept", "trimmed", "count", "original_count", "accuracy", "encoding", "fingerprint", "format", "format_fingerprint", "audience", "rule")
    KEPT_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    kept: _containers.RepeatedScalarFieldContainer[int]
    trimmed: bool
    count: int
    original_count: int
    accuracy: Accuracy
    encoding: str
    fingerprint: str
    format: str
    format_fingerprint: str
    audience: str
    rule: str
    def __init__(self, kept: _Optional[_Iterable[int]] = ..., trimmed: bool = ..., count: _Optional[int] = ..., original_count: _Optional[int] = ..., accuracy: _Optional[_Union[Accuracy, str]] = ..., encoding: _Optional[str] = ..., fingerprint: _Optional[str] = ..., format: _Optional[str] = ..., format_fingerprint: _Optional[str] = ..., audience: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class ChatFormat(_message.Message):
    __slots__ = ("name", "fingerprint", "source", "audience", "joining", "accuracy", "encodes", "control_tokens", "roles", "fields", "tools", "encodings")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    JOINING_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    ENCODES_FIELD_NUMBER: _ClassVar[int]
    CONTROL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    fingerprint: str
    source: str
    audience: str
    joining: Joining
    accuracy: Accuracy
    encodes: bool
    control_tokens: _containers.RepeatedScalarFieldContainer[str]
    roles: _containers.RepeatedScalarFieldContainer[str]
    fields: _containers.RepeatedScalarFieldContainer[str]
    tools: bool
    encodings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., fingerprint: _Optional[str] = ..., source: _Optional[str] = ..., audience: _Optional[str] = ..., joining: _Optional[_Union[Joining, str]] = ..., accuracy: _Optional[_Union[Accuracy, str]] = ..., encodes: bool = ..., control_tokens: _Optional[_Iterable[str]] = ..., roles: _Optional[_Iterable[str]] = ..., fields: _Optional[_Iterable[str]] = ..., tools: bool = ..., encodings: _Optional[_Iterable[str]] = ...) -> None: ...

class ListChatFormatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListChatFormatsResponse(_message.Message):
    __slots__ = ("formats",)
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    formats: _containers.RepeatedCompositeFieldContainer[ChatFormat]
    def __init__(self, formats: _Optional[_Iterable[_Union[ChatFormat, _Mapping]]] = ...) -> None: ...

class GetChatFormatRequest(_message.Message):
    __slots__ = ("format",)
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    format: str
    def __init__(self, format: _Optional[str] = ...) -> None: ...

class GetChatFormatResponse(_message.Message):
    __slots__ = ("format",)
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    format: ChatFormat
    def __init__(self, format: _Optional[_Union[ChatFormat, _Mapping]] = ...) -> None: ...
