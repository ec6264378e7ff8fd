"""What chats cost a server in CPU time: counting beside one text of the same size, fitting beside
counting, hostile chats, and templates in endless loops."""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import replace
from typing import Any

import grpc
from bytepair.v1 import chat_pb2, chat_pb2_grpc, tokenizer_pb2
from bytepair_engine import get_encoding
from bytepair_engine.chat import TemplateLimit, count_chat
from bytepair_engine.chat.templates import TemplateFormat
from support.chat_templates import SPINNING, SPUN

from bench.service.load import LOAD_CORE, SERVER_CORE, Server, measure, service
from bench.service.shapes import Shape
from bench.service.text import prose

ENCODING, FORMAT, SECONDS, ROUNDS = "o200k_base", "openai-chat", 2.0, 5
CHAT_BYTES, MESSAGES, LONG_MESSAGES = 8_000, 20, 2_000
CHAT_PREFIX = "/bytepair.v1.ChatService/"


def chat(messages: int, size: int) -> list[chat_pb2.ChatMessage]:
    """Alternating messages of user and assistant, with `size` bytes in all."""
    text, each = prose(size), size // messages
    return [
        chat_pb2.ChatMessage(
            role="assistant" if number % 2 else "user",
            content=[chat_pb2.ContentPart(text=text[number * each : (number + 1) * each])],
        )
        for number in range(messages)
    ]


def main() -> None:
    """Measure and print."""
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {ENCODING}, {FORMAT}, "
        f"median of {ROUNDS}, load average {os.getloadavg()[0]:.1f}"
    )
    long = chat(LONG_MESSAGES, 400_000)
    with service(1, SERVER_CORE, encodings=(ENCODING,)) as server:
        text = tokenizer_pb2.CountRequest(encoding=ENCODING, text=prose(CHAT_BYTES))
        asked = chat_pb2.CountChatRequest(
            encoding=ENCODING, format=FORMAT, messages=chat(MESSAGES, CHAT_BYTES)
        )
        show(server, "Count, 8,000 B", text, f"CountChat, {MESSAGES} messages of 8,000 B", asked)
        counted = chat_pb2.CountChatRequest(encoding=ENCODING, format=FORMAT, messages=long)
        fitted = chat_pb2.FitChatRequest(
            encoding=ENCODING, format=FORMAT, messages=long, max_tokens=20_000
        )
        several = f"{LONG_MESSAGES:,} messages of 400,000 B"
        show(server, f"CountChat, {several}", counted, f"FitChat, {several}", fitted)
    with service(1, SERVER_CORE, encodings=(ENCODING,)) as server:
        show_hostile(server)
    show_spinning()


Request = tokenizer_pb2.CountRequest | chat_pb2.CountChatRequest | chat_pb2.FitChatRequest


def show(server: Server, base_name: str, base: Request, name: str, asked: Request) -> None:
    """Measure the CPU time of two requests, alternately, and print it with the ratio."""
    found: dict[str, list[float]] = {base_name: [], name: []}
    for _ in range(ROUNDS):
        for each, request in ((base_name, base), (name, asked)):
            rpc = type(request).__name__.removesuffix("Request")
            shape = Shape(each, rpc, request.SerializeToString(), b"", None)
            is_chat = not isinstance(request, tokenizer_pb2.CountRequest)
            asked_of = replace(server, prefix=CHAT_PREFIX) if is_chat else server
            figures = measure(asked_of, shape, 4, SECONDS, connections=1, core=LOAD_CORE)
            found[each].append(figures.cpu)
    ratios = [one / other for one, other in zip(found[name], found[base_name], strict=True)]
    print("\n| call | CPU µs | ratio |\n|---|---:|---:|")
    print(f"| {base_name} | {statistics.median(found[base_name]):,.0f} | 1 |")
    print(f"| {name} | {statistics.median(found[name]):,.0f} | {statistics.median(ratios):.2f} |")


def show_hostile(server: Server) -> None:
    """Measure chats that cost more than their text."""
    empty = [chat_pb2.ChatMessage(role="user")] * 1_000_000
    nested = "[" * 500_000 + "]" * 500_000
    deep = '{"name":"f","parameters":' + '{"properties":{"a":' * 20_000 + "{}" + "}}" * 20_000 + "}"
    user = [chat_pb2.ChatMessage(role="user", content=[chat_pb2.ContentPart(text="x")])]
    chats: dict[str, dict[str, Any]] = {
        "a million empty messages": {"messages": empty},
        "16,384 empty messages": {"messages": empty[:16_384]},
        "a tool nested 500,000 deep": {"messages": user, "tools": [chat_pb2.Tool(json=nested)]},
        "a tool nested 40,000 deep": {"messages": user, "tools": [chat_pb2.Tool(json=deep)]},
        "a text of 1 MB": {
            "messages": [
                chat_pb2.ChatMessage(
                    role="user", content=[chat_pb2.ContentPart(text=prose(1_000_000))]
                )
            ]
        },
    }
    print("\n| chat | bytes | CPU ms | ns per byte | answer |\n|---|---:|---:|---:|---|")
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options) as channel:
        stub = chat_pb2_grpc.ChatServiceStub(channel)  # type: ignore[no-untyped-call]
        for name, fields in chats.items():
            request = chat_pb2.CountChatRequest(encoding=ENCODING, format=FORMAT, **fields)
            size, times, answer = request.ByteSize(), 10, "counted"
            before = server.cpu_seconds()
            for _ in range(times):
                try:
                    stub.CountChat(request)
                except grpc.RpcError as error:
                    answer = error.code().name
            each = (server.cpu_seconds() - before) / times
            print(
                f"| {name} | {size:,} | {each * 1e3:,.1f} | {each / size * 1e9:,.1f} | {answer} |"
            )


def show_spinning() -> None:
    """Measure templates in endless loops until they are stopped."""
    encoding = get_encoding(ENCODING)
    chat_of_one = [{"role": "user", "content": "hello"}]
    found = []
    for template in SPINNING:
        chosen = TemplateFormat("spinning", SPUN + template)
        times = []
        for _ in range(ROUNDS):
            before = time.process_time()
            try:
                count_chat(chat_of_one, encoding=encoding, format=chosen)
            except TemplateLimit:
                times.append(time.process_time() - before)
        found.append((statistics.median(times), template))
    longest, template = max(found)
    print("\n| templates that spin | longest CPU ms until stopped | by |\n|---:|---:|---|")
    print(f"| {len(found)} | {longest * 1e3:.0f} | `{template}` |")


if __name__ == "__main__":
    main()
