"""The options of the command, and its parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from bytepair_client import __version__
from bytepair_client._cli.output import ExitStatus
from bytepair_client._client import TokenizerClient
from bytepair_client._operations.context import Keep
from bytepair_client._operations.requests import Level
from bytepair_client._options import DEFAULT_MAX_UNARY_BYTES, DEFAULT_TARGET, DEFAULT_TIMEOUT_S

TARGET_VARIABLE = "BYTEPAIR_TARGET"
ENCODING_VARIABLE = "BYTEPAIR_ENCODING"
API_KEY_VARIABLE = "BYTEPAIR_API_KEY"
#: By argument, in the order of the fields of `Tls`.
TLS_VARIABLES = {
    "tls_ca": "BYTEPAIR_TLS_CA",
    "tls_cert": "BYTEPAIR_TLS_CERT",
    "tls_key": "BYTEPAIR_TLS_KEY",
    "tls_server_name": "BYTEPAIR_TLS_SERVER_NAME",
}

_DESCRIPTION = "Count, encode and decode tokens by a bytepair tokenizer server."

_EPILOG = f"""\
examples:
  bytepair encodings                                the server's encodings
  bytepair count -e o200k_base *.md                 tokens of each file, and the total
  echo -n "Hello" | bytepair encode --model gpt-4o
  bytepair encode -e o200k_base a.txt | bytepair decode -e o200k_base | cmp - a.txt
  bytepair truncate -e o200k_base --max-tokens 1000 --keep end log.txt
  bytepair split -e o200k_base --max-tokens 512 book.txt

environment:
  {TARGET_VARIABLE}     the server, where --target is not given
  {ENCODING_VARIABLE}   the encoding, where --encoding is not given
  {API_KEY_VARIABLE}    the API key, where --api-key-file is not given
  BYTEPAIR_TLS_CA, BYTEPAIR_TLS_CERT, BYTEPAIR_TLS_KEY, BYTEPAIR_TLS_SERVER_NAME
                      each as the option of its name, where that is not given

exit status:
  0    done; for health: the server is serving
  1    at least one input was rejected or failed; for health: not serving, or no answer
  2    wrong usage
  3    no answer from the server, it is overloaded, or this caller's quota is used up: a later
       attempt may succeed
  130  interrupted; 141  the reader of the output went away
"""

#: Options, each as the arguments of `add_argument`.
Options = tuple[tuple[tuple[str, ...], dict[str, Any]], ...]


def option(names: str, explanation: str, **others: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """One option. `names` are separated by spaces."""
    return tuple(names.split()), {"help": explanation, **others}


_JSON = option("--json", "print JSON", action="store_true")
_SERVER: Options = (
    option("--target", f"address of the server (default: {DEFAULT_TARGET})", metavar="HOST:PORT"),
    option(
        "--timeout",
        f"deadline of each call (default: {DEFAULT_TIMEOUT_S:g}; none for an input of more than "
        f"{DEFAULT_MAX_UNARY_BYTES >> 20} MiB, if the command can stream it)",
        type=float,
        metavar="SECONDS",
    ),
    option("--api-key-file", "a file that holds the API key", metavar="FILE"),
    option("--tls", "use TLS, and trust public certificate authorities", action="store_true"),
    option("--tls-ca", "use TLS, and trust these root certificates (PEM)", metavar="FILE"),
    option("--tls-cert", "use TLS with this client certificate (PEM)", metavar="FILE"),
    option("--tls-key", "the private key of --tls-cert (PEM)", metavar="FILE"),
    option("--tls-server-name", "the name that the server's certificate must have", metavar="NAME"),
)

ENCODING: Options = (
    option(
        "-e --encoding --model",
        "required: the name of an encoding, or of a model that uses it, such as o200k_base or "
        "gpt-4o",
        metavar="NAME",
    ),
    option(
        "--expected-fingerprint",
        "fail unless the server's encoding has this fingerprint",
        metavar="FINGERPRINT",
    ),
)

SPECIAL: Options = (
    option(
        "--allowed-special",
        "make this special token in the text a control token; may be repeated; 'all' for all that "
        "the server permits",
        action="append",
        default=[],
        metavar="TOKEN",
    ),
    option(
        "--disallowed-special",
        "how other special tokens in the text are treated: as an error, or as ordinary text "
        "(default: reject in encode, else as-text)",
        choices=["reject", "as-text"],
    ),
    option(
        "--add-special-tokens",
        "add the encoding's template around each text, if the server permits it",
        action="store_true",
    ),
)

DECODING: Options = (
    option(
        "--errors",
        "what to write for bytes that are not UTF-8: U+FFFD, an error, or the unchanged bytes "
        "(default: %(default)s)",
        choices=["replace", "strict", "bytes"],
        default="replace",
    ),
    option("--skip-special-tokens", "omit special tokens", action="store_true"),
)
CHAT_FORMAT = option(
    "--format",
    "the chat format, such as openai-chat; 'bytepair chat-formats' lists them",
    required=True,
    metavar="NAME",
)
TRUNCATING: Options = (
    option(
        "--keep",
        "which part to keep (default: %(default)s)",
        choices=get_args(Keep),
        default="start",
    ),
    option(
        "--marker",
        "text to put where text was omitted; its tokens count",
        default="",
        metavar="TEXT",
    ),
)
OVERLAP = option(
    "--overlap-tokens",
    "maximum number of tokens that a chunk shares with the one before it (default: 0)",
    type=int,
    default=0,
    metavar="N",
)


def size(level: str) -> Options:
    """The options for a number of tokens, and for the level at which text is cut."""
    return (
        option(
            "--max-tokens",
            "maximum number of tokens of each result",
            type=int,
            required=True,
            metavar="N",
        ),
        option(
            "--level",
            "where text may be cut (default: %(default)s)",
            choices=get_args(Level),
            default=level,
        ),
    )


def names(explanation: str) -> Options:
    """Any number of names."""
    return (option("names", explanation, nargs="*", metavar="NAME"),)


def files(content: str) -> Options:
    """Any number of files that hold `content`."""
    explanation = f"{content} in a file; '-' or no file: standard input"
    return (option("files", explanation, nargs="*", default=["-"], metavar="FILE"),)


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    run: Callable[[TokenizerClient, argparse.Namespace], ExitStatus]
    summary: str  # one line of `bytepair --help`
    description: str
    options: Options


def build_parser(
    commands: Mapping[str, Command], others: Mapping[str, str] | None = None
) -> argparse.ArgumentParser:
    """The parser of the command line. In its result, `command` is the name of the command.

    Args:
        commands: The commands by name.
        others: The summaries of other distributions' commands, by name. They are only listed.
    """
    parser = _Parser(prog="bytepair", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"bytepair {__version__}")
    group = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    for name, command in commands.items():
        made = group.add_parser(name, help=command.summary, description=command.description)
        for flags, arguments in (*command.options, _JSON):
            made.add_argument(*flags, **arguments)
        server = made.add_argument_group("server")
        for flags, arguments in _SERVER:
            server.add_argument(*flags, **arguments)
    for name, summary in (others or {}).items():
        if name not in commands:
            group.add_parser(name, help=summary.replace("%", "%%"), add_help=False)
    return parser


class _Parser(argparse.ArgumentParser):
    """Keeps the layout of the epilog. Rejects abbreviations, which break with later options."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
