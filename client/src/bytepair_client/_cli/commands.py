"""The commands: each calls the server and prints the result."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial, wraps
from inspect import getdoc
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from bytepair.v1.chat_pb2 import ACCURACY_EXACT

from bytepair_client._cli.inputs import Input, opened
from bytepair_client._cli.options import (
    CHAT,
    CHAT_FORMAT,
    DECODING,
    ENCODING,
    IDS,
    OVERLAP,
    SPECIAL,
    TEXT,
    TRUNCATING,
    Options,
    files,
    names,
    size,
)
from bytepair_client._cli.output import (
    ARGUMENTS,
    CommandError,
    ExitStatus,
    Result,
    Results,
    described,
    fields_of,
    write,
    write_ids,
    write_json,
)
from bytepair_client._client import TokenizerClient
from bytepair_client._errors import InvalidOption
from bytepair_client._operations import chats, context, decoding, encoding
from bytepair_client._operations.describing import ChatFormatInfo, EncodingInfo

Run = Callable[[TokenizerClient, Namespace], ExitStatus]
OfInput = Callable[[TokenizerClient, Namespace, Input], Result]
Info = TypeVar("Info", EncodingInfo, ChatFormatInfo)


class Command(NamedTuple):
    """One command."""

    run: Callable[[TokenizerClient, Namespace], ExitStatus]
    summary: str  # one line of `bytepair --help`
    description: str
    options: Options


#: By name, in the order of `--help`.
COMMANDS: dict[str, Command] = {}


def command(summary: str, options: Options = ()) -> Callable[[Run], Run]:
    """Register a function as the command of its name. Its docstring is the description."""

    def add(run: Run) -> Run:
        name = run.__name__.replace("_", "-")
        COMMANDS[name] = Command(run, summary, getdoc(run) or "", options)
        return run

    return add


def each_input(operation: Callable[..., object], empty: object, of_input: OfInput) -> Run:
    """Turn a function of one input into a command over all inputs.

    The options are checked before an input is read: by `operation`, for an `empty` input.
    """

    @wraps(of_input)
    def run(client: TokenizerClient, args: Namespace) -> ExitStatus:
        if args.command == "decode" and args.errors == "bytes" and args.json:
            raise CommandError("--errors bytes cannot be combined with --json", ExitStatus.USAGE)
        if args.command == "truncate" and len(args.files) > 1 and not args.json:
            raise CommandError("truncating several files needs --json", ExitStatus.USAGE)
        operation(client._defaults, empty, **options_of(args))
        as_json = args.json and args.command != "split"  # which always writes JSON
        results = Results(len(args.files), as_json=as_json)
        writes = args.command != "count" and not as_json
        for name in args.files:
            with results.errors_of(name):
                with opened(name, writes=writes) as source:
                    result = of_input(client, args, source)
                results.add(name, result)
        return results.end(sums=args.command == "count")

    return run


@command("count tokens", (*ENCODING, *SPECIAL, *files(TEXT)))
@partial(each_input, encoding.count, "")
def count(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Print the number of tokens of each file, and the total of several."""
    options, raw = options_of(args), client.with_raw_response
    response: Any
    if source.is_large:
        response = raw.count_stream(source.text(), timeout=args.timeout, **options)
    else:
        response = raw.count(source.whole_text(), **options)
    several = len(args.files) > 1
    line = f"{response.count:9} {source.name}" if several else f"{response.count}{source.suffix}"
    return Result({"count": response.count}, response, f"{line}\n")


@command("count the tokens of a chat", (*ENCODING, *CHAT_FORMAT, *files(CHAT)))
@partial(each_input, chats.count_chat, ())
def count_chat(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Print the number of tokens of each chat as the model sees it, and whether that is exact or an
    estimate."""
    messages, tools = source.chat()
    try:
        response = client.with_raw_response.count_chat(messages, tools=tools, **options_of(args))
    except InvalidOption as error:
        if error.field not in ("messages", "tools"):
            raise
        problem = error.message.removeprefix(f"{error.field}: ")
        raise CommandError(problem) from None
    accuracy = "exact" if response.accuracy == ACCURACY_EXACT else "estimate"
    result = {"count": response.count, "accuracy": accuracy, "rule": response.rule}
    result["audience"] = response.audience
    result["message_counts"] = list(response.message_counts)
    for name in ("tools_count", "frame_count", "format", "format_fingerprint"):
        result[name] = getattr(response, name)
    return Result(result, response, f"{response.count}{source.suffix} ({accuracy})\n")


@command("encode text as token ids", (*ENCODING, *SPECIAL, *files(TEXT)))
@partial(each_input, encoding.encode, "")
def encode(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Print the token ids of each file on one line, separated by spaces."""
    options = options_of(args)
    if not source.is_large:
        response = client.with_raw_response.encode(source.whole_text(), **options)
        line = " ".join(map(str, response.ids)) + "\n"
        return Result({"ids": list(response.ids)}, response, line)
    stream = client.encode_stream(source.text(), timeout=args.timeout, **options)
    if args.json:
        ids = list(chain.from_iterable(stream))
        return Result({"ids": ids}, stream.last)
    write_ids(stream)
    return Result({}, stream.last)


@command("decode token ids to text", (*ENCODING, *DECODING, *files(IDS)))
@partial(each_input, decoding.decode, ())
def decode(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Write the text of token ids exactly, with no line end added."""
    options, as_bytes = options_of(args), args.errors == "bytes"
    if source.is_large:
        stream = client.decode_stream(
            source.ids(),
            errors="replace" if as_bytes else args.errors,
            as_bytes=as_bytes,
            timeout=args.timeout,
            **options,
        )
        if args.json:
            text = "".join(stream)
            return Result({"text": text}, stream.last)
        for piece in stream:
            write(piece)
        return Result({}, stream.last)
    ids = chain.from_iterable(source.ids())
    if as_bytes:
        return Result({}, output=client.decode_bytes(ids, **options))
    response = client.with_raw_response.decode(ids, errors=args.errors, **options)
    return Result({"text": response.text}, response, response.text)


@command(
    "cut text to a number of tokens",
    (*ENCODING, *SPECIAL, *size("grapheme"), *TRUNCATING, *files(TEXT)),
)
@partial(each_input, context.truncate, "")
def truncate(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Write as much of a file as fits, with no line end added. Several files need --json."""
    response = client.with_raw_response.truncate(source.whole_text(), **options_of(args))
    result = {
        "text": response.text,
        "count": response.count,
        "truncated": response.truncated,
        "kept": [[part.start, part.end] for part in response.kept],
    }
    return Result(result, response, response.text)


@command(
    "split text into chunks of a number of tokens",
    (*ENCODING, *SPECIAL, *size("paragraph"), OVERLAP, *files(TEXT)),
)
@partial(each_input, context.split, "")
def split(client: TokenizerClient, args: Namespace, source: Input) -> Result:
    """Print a line of JSON for each chunk: its start and end in code points, the number of its
    tokens, and its text. A file may have any size."""
    chunks = client.split_stream(source.text(), timeout=args.timeout, **options_of(args))
    named = {"file": source.name} if source.suffix else {}
    for chunk in chunks:
        write_json({**named, **asdict(chunk)}, ensure_ascii=False)
    return Result({})


@command("find causes of a surprising count", (*ENCODING, *files(TEXT)))
@partial(each_input, context.inspect, "")
def inspect_text(client: TokenizerClient, _args: Namespace, source: Input) -> Result:
    """Print what makes the count of each file surprising: its range in code points, and one of

    TRAILING_WHITESPACE      white space at the end, which following text would join
    UNSTABLE_TAIL            from here on, following text can change the tokens
    SPECIAL_TOKEN_SPELLED    the text contains a special token
    SPECIAL_TOKEN_LOOKALIKE  the text looks like a special token
    NOT_NFC                  not in Unicode's normal form C
    INVISIBLE_CHARACTER      a character without width
    TAG_CHARACTER            a tag character outside a flag
    BIDI_CONTROL             a character that changes the direction of text
    REPLACEMENT_CHARACTER    U+FFFD: the text was decoded wrongly before
    CONTROL_CHARACTER        a control character other than TAB, LF and CR
    FLAGGED_TOKEN            a token that the operator flagged
    UNKNOWN_TOKEN            the unknown token of the vocabulary
    LONG_RUN                 can only be encoded together, and is too long for a stream
    """
    found = client.inspect(source.whole_text())
    lines = [
        f"{finding.start}-{finding.end} {finding.code}"
        + (f" {finding.token}" if finding.token else "")
        + ("" if finding.code_point is None else f" U+{finding.code_point:04X}")
        for finding in found.findings
    ]
    lines.append(
        f"{found.stable_tokens} of {found.count} tokens stay the same whatever text follows"
    )
    prefix = f"{source.name}: " if source.suffix else ""
    return Result(asdict(found), output="".join(f"{prefix}{line}\n" for line in lines))


def options_of(args: Namespace) -> dict[str, Any]:
    """The arguments of the client's method, except for those that depend on the input."""
    options = {name: value for name, value in vars(args).items() if name in ARGUMENTS}
    if set(options.get("allowed_special", ())) == {"all"}:
        options["allowed_special"] = "all"
    action = options.pop("disallowed_special", None)
    if action is not None:  # None: the default of the method
        options["disallowed_special"] = "all" if action == "reject" else ()
    return options


@command(
    "list the server's encodings, or describe named ones", names("the name or alias of an encoding")
)
def encodings(client: TokenizerClient, args: Namespace) -> ExitStatus:
    """List the server's encodings, or describe those that are named."""
    found = list(map(client.get_encoding, args.names)) or client.list_encodings()
    return _describe(args, found, _listed_encoding)


@command(
    "list the server's chat formats, or describe named ones", names("the name of a chat format")
)
def chat_formats(client: TokenizerClient, args: Namespace) -> ExitStatus:
    """List the server's chat formats, or describe those that are named."""
    found = list(map(client.get_chat_format, args.names)) or client.list_chat_formats()
    return _describe(args, found, _listed_format, _described_format)


@command("check whether the server is serving", ())
def health(client: TokenizerClient, args: Namespace) -> ExitStatus:
    """Ask the server's health service; the exit status is 0 if it is serving and 1 otherwise."""
    status = client.health()
    if args.json:
        write_json({"target": client.target, "status": status})
    else:
        write(f"{client.target}: {status}\n")
    return ExitStatus.OK if status == "SERVING" else ExitStatus.FAILED


def _describe(
    args: Namespace,
    found: list[Info],
    listed: Callable[[Info], str],
    in_full: Callable[[Info], str] = described,
) -> ExitStatus:
    """Print descriptions: as JSON, in full if they were named, else listed."""
    if args.json:
        write_json(list(map(fields_of, found)))
    elif args.names:
        write("\n".join(map(in_full, found)))
    else:
        write("".join(map(listed, found)))
    return ExitStatus.OK


def _listed_encoding(info: EncodingInfo) -> str:
    line = f"{info.name:15} {info.n_vocab:7} {info.backend:9} {info.fingerprint}\n"
    return line + (f"    {', '.join(info.aliases)}\n" if info.aliases else "")


def _listed_format(info: ChatFormatInfo) -> str:
    note = "; with tools an estimate" if _estimates_tools(info) else ""
    return f"{info.name:15} {'exact' if info.is_exact else 'estimate':9} {info.audience}{note}\n"


def _described_format(info: ChatFormatInfo) -> str:
    return described(info) + ("with tools:      estimate\n" if _estimates_tools(info) else "")


def _estimates_tools(info: ChatFormatInfo) -> bool:
    """Whether tools alone make a count an estimate: only a rule for counting is published."""
    return info.is_exact and info.tools and not info.encodes
