"""Random calls have the same answers and errors by every protocol, and on both transports."""

from __future__ import annotations

import json
import random
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import unquote

import grpc
import pytest
from bytepair.v1 import chat_pb2, tokenizer_pb2
from conftest import Serve
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.rpc import code_pb2, error_details_pb2, status_pb2  # type: ignore[import-untyped]
from support.http2 import message as framed

CALLS: Final = 500
SERVICES: Final = [
    tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"],
    chat_pb2.DESCRIPTOR.services_by_name["ChatService"],
]
RPCS: Final[list[MethodDescriptor]] = [rpc for service in SERVICES for rpc in service.methods]
TEXTS: Final = (
    *("", "a", "hello world", "\0", "e\u0301", "🙂👨‍👩‍👧", "\ufeff", "\U0010ffff", " " * 50),
    *("a\r\nb\n", "One. Two!\n\nThree", "x<|endoftext|>y", "<|im_start|>", "0123456789"),
)
NUMBERS: Final = (0, 1, 2, 3, 10, 100, 1000, 15339, 50256, 50257, 100257, 2**31, 2**32 - 1)
#: Values of fields for which a random text would hardly ever be valid.
STRINGS: Final = {
    "encoding": (*["cl100k_base"] * 6, "gpt-4", "r50k_base", "nope", "", "gpt-4\0", "ü"),
    "format": ("openai-chat", "openai-chat", "chatml", "nope"),
    "role": ("user", "assistant", "system", "tool", "x"),
    "allowed_special": ("<|endoftext|>", "ALL", "all", ""),
    "special_token": ("<|endoftext|>", "<|im_start|>", ""),
    "json": ("{}", '{"type":"function","function":{"name":"f"}}', "[", r'"\ud800"'),
}
USUAL: Final = {"encoding", "format", "messages", "items", "text", "ids", "max_tokens", "config"}

#: The answers, and the status as a `google.rpc.Status` in JSON, which is empty without an error.
Result = tuple[list[Any], dict[str, Any]]
Way = Callable[[MethodDescriptor, list[bytes]], Result]


class Requests:
    """Makes random requests, most of which are valid."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def of(self, rpc: MethodDescriptor) -> list[bytes]:
        """The messages of a call: one, or up to four of a stream."""
        number = self._random.randrange(5) if rpc.client_streaming else 1
        return [self._message(rpc, is_first=place == 0) for place in range(number)]

    def _message(self, rpc: MethodDescriptor, *, is_first: bool) -> bytes:
        request: Any = GetMessageClass(rpc.input_type)()
        self._fill(request)
        if rpc.client_streaming and not is_first and self._random.random() < 0.9:
            request.ClearField("config")
        raw: bytes = request.SerializeToString()
        if self._random.random() < 0.03:
            raw = raw[: self._random.randrange(len(raw) + 1)] + self._random.randbytes(2)
        return raw

    def _fill(self, message: Any) -> None:
        for field in message.DESCRIPTOR.fields:
            if self._random.random() > (0.95 if field.name in USUAL else 0.2):
                continue
            value, number = getattr(message, field.name), self._random.randrange(4)
            if field.message_type is None and field.is_repeated:
                value.extend(self._scalar(field) for _ in range(number))
            elif field.message_type is None:
                setattr(message, field.name, self._scalar(field))
            elif field.message_type.GetOptions().map_entry:
                value["a"] = self._random.choice(TEXTS)
            elif field.is_repeated:
                for _ in range(number):
                    self._fill(value.add())
            else:
                value.SetInParent()
                self._fill(value)

    def _scalar(self, field: FieldDescriptor) -> Any:
        values: Any = NUMBERS
        if field.enum_type is not None:
            values = [*(each.number for each in field.enum_type.values), 99]
        elif field.type == FieldDescriptor.TYPE_STRING:
            values = STRINGS.get(field.name, TEXTS)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            values = [text.encode()[:3] for text in TEXTS]
        elif field.type == FieldDescriptor.TYPE_BOOL:
            values = (False, True)
        return self._random.choice(values)


def parsed(rpc: MethodDescriptor, answers: list[bytes]) -> list[Any]:
    return [GetMessageClass(rpc.output_type).FromString(each) for each in answers]


def failed(status: Any) -> dict[str, Any]:
    pool = error_details_pb2.DESCRIPTOR.pool
    found: dict[str, Any] = json_format.MessageToDict(status, descriptor_pool=pool)
    return found


def by_grpc(channel: grpc.Channel) -> Way:
    def call(rpc: MethodDescriptor, requests: list[bytes]) -> Result:
        streams = (rpc.client_streaming, rpc.server_streaming)
        kind = "_".join("stream" if each else "unary" for each in streams)
        method = getattr(channel, kind)(f"/{rpc.containing_service.full_name}/{rpc.name}")
        answers: list[bytes] = []
        try:
            answer = method(iter(requests) if rpc.client_streaming else requests[0])
            answers.extend(answer if rpc.server_streaming else [answer])
        except grpc.RpcError as error:
            pairs: Any = error.trailing_metadata()
            status = status_pb2.Status.FromString(dict(pairs)["grpc-status-details-bin"])
            return parsed(rpc, answers), failed(status)
        return parsed(rpc, answers), {}

    return call


def post(
    target: str, rpc: MethodDescriptor, content_type: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(target, timeout=60)
    try:
        path = f"/{rpc.containing_service.full_name}/{rpc.name}"
        connection.request("POST", path, body, {"content-type": f"application/{content_type}"})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def unframed(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The flags and content of each message in a body."""
    while body:
        flags, size = struct.unpack(">BI", body[:5])
        yield flags, body[5 : 5 + size]
        body = body[5 + size :]


def decoded(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4))


def by_grpc_web(target: str) -> Way:
    def call(rpc: MethodDescriptor, requests: list[bytes]) -> Result:
        _, end, body = post(target, rpc, "grpc-web+proto", b"".join(map(framed, requests)))
        answers = []
        for flags, content in unframed(body):
            if flags & 0x80:
                for line in content.decode().splitlines():
                    name, _, value = line.partition(":")
                    end[name] = value.strip()
            else:
                answers.append(content)
        if end["grpc-status"] == "0":
            return parsed(rpc, answers), {}
        status = status_pb2.Status.FromString(decoded(end["grpc-status-details-bin"]))
        shown = int(end["grpc-status"]), unquote(end["grpc-message"])
        assert shown == (status.code, status.message)
        return parsed(rpc, answers), failed(status)

    return call


def of_connect(error: dict[str, Any]) -> dict[str, Any]:
    """The error of Connect's protocol."""
    status = status_pb2.Status(message=error["message"])
    status.code = code_pb2.Code.Value(error["code"].upper())
    for each in error["details"]:
        url = f"type.googleapis.com/{each['type']}"
        status.details.add(type_url=url, value=decoded(each["value"]))
    return failed(status)


def by_connect(target: str) -> Way:
    def call(rpc: MethodDescriptor, requests: list[bytes]) -> Result:
        if rpc.client_streaming:
            _, _, body = post(target, rpc, "connect+proto", b"".join(map(framed, requests)))
            *answers, (_, end) = unframed(body)
            error = json.loads(end).get("error")
            return parsed(rpc, [each for _, each in answers]), of_connect(error) if error else {}
        status, _, body = post(target, rpc, "proto", requests[0])
        return (parsed(rpc, [body]), {}) if status == 200 else ([], of_connect(json.loads(body)))

    return call


def by_json(target: str) -> Way:
    """Errors are compared without their details and message, which name fields as in JSON."""

    def call(rpc: MethodDescriptor, requests: list[bytes]) -> Result:
        request = GetMessageClass(rpc.input_type).FromString(requests[0])
        status, _, body = post(target, rpc, "json", json_format.MessageToJson(request).encode())
        if status != 200:
            error = json.loads(body)
            failure = of_connect(error)
            for each, shown in zip(failure.get("details", []), error["details"], strict=True):
                assert each == {"@type": each["@type"], **shown["debug"]}
            return [], {"code": failure["code"]}
        return [json_format.Parse(body, GetMessageClass(rpc.output_type)())], {}

    return call


@pytest.mark.parametrize("is_stream", [False, True], ids=["unary", "streams"])
def test_random_calls_have_the_same_results(serve: Serve, is_stream: bool) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    encodings = ("--builtin-encodings", "cl100k_base,r50k_base")
    native = serve("--transport", "native", *encodings)
    threads = serve("--transport", "native", "--inline-max-bytes", "0", *encodings)
    portable = serve("--transport", "grpcio", *encodings)
    first, as_json = by_grpc(native.channel), by_json(native.target)
    ways = [by_grpc(threads.channel), by_grpc(portable.channel)]
    ways += [by_grpc_web(native.target), by_connect(native.target)]
    requests, outcomes = Requests(seed), set()
    rpcs = [rpc for rpc in RPCS if rpc.client_streaming == is_stream]
    for number in range(CALLS):
        rpc = rpcs[number % len(rpcs)]
        sent = requests.of(rpc)
        right = first(rpc, sent)
        outcomes.add(right[1].get("code"))
        for way in ways:
            assert way(rpc, sent) == right, (rpc.name, sent)
        if not is_stream:
            try:
                answers, failure = as_json(rpc, sent)
            except DecodeError:  # it is not a request
                continue
            assert (answers, failure.get("code")) == (right[0], right[1].get("code")), sent
    assert outcomes >= {None, grpc.StatusCode.INVALID_ARGUMENT.value[0]}
    unexpected = {grpc.StatusCode.INTERNAL.value[0], grpc.StatusCode.UNKNOWN.value[0]}
    assert not outcomes & unexpected
