"""The commands: each calls the server and prints the answer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from itertools import chain
from typing import Any

from bytepair.v1.chat_pb2 import ACCURACY_EXACT
from bytepair.v1.stream_pb2 import CountStreamResponse
from bytepair.v1.tokenizer_pb2 import CountResponse

from bytepair_client._cli.inputs import opened
from bytepair_client._cli.output import (
    STANDARD_INPUT,
    CommandError,
    ExitStatus,
    Results,
    write,
    write_text,
)
from bytepair_client._client import TokenizerClient
from bytepair_client._operations.describing import EncodingInfo

# More special tokens than this are counted and not listed, except in JSON.
MOST_LISTED = 20

Command = Callable[[TokenizerClient, argparse.Namespace], ExitStatus]


def count(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair count`."""
    results = Results(args.json)
    options = special_options(args)
    total = 0
    several = len(args.files) > 1
    for name in args.files:
        with results.of(name) as result, opened(name) as source:
            answer: CountResponse | CountStreamResponse
            if source.is_large:
                answer = client.with_raw_response.count_stream(
                    source.text(), timeout=args.timeout, **options
                )
            else:
                answer = client.with_raw_response.count("".join(source.text()), **options)
            total += answer.count
            result.answered(answer)
            result.fields["count"] = answer.count
            if several:
                result.line = f"{answer.count:9} {name}"
            else:
                result.line = str(answer.count) + ("" if name == STANDARD_INPUT else f" {name}")
    if several:
        results.print_line(f"{total:9} total")
    results.print_json(total=total)
    return results.status


def encode(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair encode`."""
    results = Results(args.json)
    options = special_options(args)
    for name in args.files:
        with results.of(name) as result, opened(name, writes=not args.json) as source:
            if source.is_large:
                stream = client.encode_stream(source.text(), timeout=args.timeout, **options)
                if args.json:
                    result.fields["ids"] = [token_id for ids in stream for token_id in ids]
                else:
                    _write_line(stream)
                result.answered(stream.last)
            else:
                answer = client.with_raw_response.encode("".join(source.text()), **options)
                result.answered(answer)
                result.fields["ids"] = list(answer.ids)
                result.line = " ".join(map(str, answer.ids))
    results.print_json()
    return results.status


def decode(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair decode`."""
    as_bytes = args.errors == "bytes"
    if args.json and as_bytes:
        raise CommandError("--errors bytes cannot be combined with --json", ExitStatus.USAGE)
    results = Results(args.json)
    options = {"skip_special_tokens": args.skip_special_tokens}
    for name in args.files:
        with results.of(name) as result, opened(name, writes=not args.json) as source:
            if source.is_large:
                stream = client.decode_stream(
                    source.ids(),
                    errors="replace" if as_bytes else args.errors,
                    as_bytes=as_bytes,
                    timeout=args.timeout,
                    **options,
                )
                if args.json:
                    result.fields["text"] = "".join(stream)
                else:
                    for piece in stream:
                        write(piece if isinstance(piece, bytes) else piece.encode())
                result.answered(stream.last)
            elif as_bytes:
                result.data = client.decode_bytes(chain.from_iterable(source.ids()), **options)
            else:
                ids = chain.from_iterable(source.ids())
                answer = client.with_raw_response.decode(ids, errors=args.errors, **options)
                result.answered(answer)
                result.fields["text"] = answer.text
                result.data = answer.text.encode()
    results.print_json()
    return results.status


def count_chat(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair count-chat`."""
    results = Results(args.json)
    for name in args.files:
        with results.of(name) as result, opened(name) as source:
            messages, tools = _chat(name, "".join(source.text()))
            answer = client.with_raw_response.count_chat(messages, format=args.format, tools=tools)
            accuracy = "exact" if answer.accuracy == ACCURACY_EXACT else "estimate"
            result.answered(answer)
            result.fields |= {
                "count": answer.count,
                "accuracy": accuracy,
                "rule": answer.rule,
                "message_counts": list(answer.message_counts),
                "tools_count": answer.tools_count,
                "frame_count": answer.frame_count,
                "format": answer.format,
                "format_fingerprint": answer.format_fingerprint,
            }
            shown_name = "" if name == STANDARD_INPUT else f" {name}"
            result.line = f"{answer.count}{shown_name} ({accuracy})"
    results.print_json()
    return results.status


def _chat(name: str, text: str) -> tuple[list[Any], list[Any]]:
    """The messages and tools of a file: a list of messages, or an object with both."""
    try:
        value = json.loads(text)
    except ValueError:
        raise CommandError(f"{name}: not JSON") from None
    if isinstance(value, dict):
        messages, tools = value.get("messages"), value.get("tools") or []
    else:
        messages, tools = value, []
    if not isinstance(messages, list) or not isinstance(tools, list):
        raise CommandError(f'{name}: expected a list of messages, or an object with "messages"')
    return messages, tools


def truncate(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair truncate`."""
    results = Results(args.json)
    for name in args.files:
        with results.of(name) as result, opened(name, writes=not args.json) as source:
            answer = client.with_raw_response.truncate(
                "".join(source.text()),
                args.max_tokens,
                keep=args.keep,
                level=args.level,
                marker=args.marker,
                **special_options(args),
            )
            result.answered(answer)
            result.fields |= {
                "text": answer.text,
                "count": answer.count,
                "truncated": answer.truncated,
                "kept": [[part.start, part.end] for part in answer.kept],
            }
            result.data = answer.text.encode()
    results.print_json()
    return results.status


def split(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair split`: one line of JSON for each chunk, as they come."""
    results = Results(as_json=False)
    for name in args.files:
        with results.of(name), opened(name, writes=True) as source:
            chunks = client.split_stream(
                source.text(),
                args.max_tokens,
                overlap_tokens=args.overlap_tokens,
                level=args.level,
                timeout=args.timeout,
                **special_options(args),
            )
            for chunk in chunks:
                named = {} if name == STANDARD_INPUT else {"file": name}
                write_text(json.dumps({**named, **asdict(chunk)}, ensure_ascii=False) + "\n")
    return results.status


def inspect_text(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair inspect-text`."""
    results = Results(args.json)
    for name in args.files:
        with results.of(name) as result, opened(name) as source:
            found = client.inspect("".join(source.text()))
            result.fields |= asdict(found)
            lines = [
                f"{finding.start}-{finding.end} {finding.code}"
                + (f" {finding.token}" if finding.token else "")
                + ("" if finding.code_point is None else f" U+{finding.code_point:04X}")
                for finding in found.findings
            ]
            lines.append(
                f"{found.count} tokens, of which {found.stable_tokens} stay whatever follows"
            )
            prefix = "" if name == STANDARD_INPUT else f"{name}: "
            result.line = "\n".join(prefix + line for line in lines)
    results.print_json()
    return results.status


def special_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of methods that say what special tokens in text become."""
    allowed = args.allowed_special
    options: dict[str, Any] = {
        "allowed_special": "all" if "all" in allowed else frozenset(allowed),
        "add_special_tokens": args.add_special_tokens,
    }
    if args.disallowed_special is not None:  # otherwise the default of the operation
        options["disallowed_special"] = "all" if args.disallowed_special == "reject" else ()
    return options


def encodings(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair encodings`."""
    if args.names:
        found = [client.get_encoding(name) for name in args.names]
        text = "\n".join(map(_described, found))
    else:
        found = client.list_encodings()
        text = "".join(map(_listed, found))
    write_text(_json([_fields(info) for info in found]) if args.json else text)
    return ExitStatus.OK


def health(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair health`."""
    status = client.health()
    text = _json({"target": client.target, "status": status})
    write_text(text if args.json else f"{client.target}: {status}\n")
    return ExitStatus.OK if status == "SERVING" else ExitStatus.FAILED


COMMANDS: Mapping[str, Command] = {
    "count": count,
    "count-chat": count_chat,
    "encode": encode,
    "decode": decode,
    "truncate": truncate,
    "split": split,
    "inspect-text": inspect_text,
    "encodings": encodings,
    "health": health,
}


def _write_line(stream: Iterable[list[int]]) -> None:
    """Write ids as they come, on one line, which ends whatever happens."""
    separator = ""
    try:
        for ids in stream:
            write_text(separator + " ".join(map(str, ids)))
            separator = " "
    finally:
        if separator:
            write_text("\n")


def _listed(info: EncodingInfo) -> str:
    line = f"{info.name:15} {info.n_vocab:7} {info.backend:9} {info.fingerprint}\n"
    return line + (f"    {', '.join(info.aliases)}\n" if info.aliases else "")


def _described(info: EncodingInfo) -> str:
    shown = _fields(info)
    special = info.special_tokens
    shown["aliases"] = ", ".join(info.aliases) or "none"
    shown["special_tokens"] = (
        ", ".join(f"{token} {token_id}" for token, token_id in special.items()) or "none"
        if len(special) <= MOST_LISTED
        else f"{len(special)}; --json lists them"
    )
    for name in ("template_before", "template_after"):
        shown[name] = " ".join(shown[name]) or "none"
    return "".join(f"{name + ':':16} {value}\n" for name, value in shown.items())


def _fields(info: EncodingInfo) -> dict[str, Any]:
    named = {field.name: getattr(info, field.name) for field in fields(info)}
    return named | {"special_tokens": dict(info.special_tokens)}


def _json(value: object) -> str:
    return json.dumps(value) + "\n"
