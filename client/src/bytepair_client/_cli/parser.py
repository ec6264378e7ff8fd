"""The options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from bytepair_client._options import DEFAULT_MAX_UNARY_BYTES, DEFAULT_TARGET, DEFAULT_TIMEOUT_S
from bytepair_client._version import __version__

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
  bytepair encodings                                what the server has
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


def build_parser(others: Mapping[str, str] | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command; `command` of its result names the chosen one.

    Args:
        others: Commands that other distributions add, with a summary each: they are listed, and
            parse their arguments themselves.
    """
    parser = _Parser(prog="bytepair", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"bytepair {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    server, encoding, special = _server(), _encoding(), _special()
    text, chat = "UTF-8 text", 'JSON, a list of messages or {"messages": …, "tools": …},'
    ids = "ids, separated by white space or commas, or a JSON list,"

    def add(
        name: str, summary: str, description: str, *parents: _Parser, content: str | None = None
    ) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(
            name, parents=[*parents, server], help=summary, description=description
        )
        if content is not None:
            made.add_argument(
                "files",
                nargs="*",
                default=["-"],
                metavar="FILE",
                help=f"{content} in a file; '-', or none: standard input",
            )
        return made

    add(
        "count",
        "count tokens",
        "Print the number of tokens of each file, and the total of several.",
        encoding,
        special,
        content=text,
    )
    add(
        "count-chat",
        "count the tokens of a chat",
        "Print the number of tokens of each chat as the model sees it, and whether that is exact "
        "or an estimate.",
        encoding,
        content=chat,
    ).add_argument(
        "--format", required=True, metavar="NAME", help="the chat format, such as openai-chat"
    )
    add(
        "encode",
        "text to token ids",
        "Print the token ids of each file on one line, separated by spaces.",
        encoding,
        special,
        content=text,
    )
    decode = add(
        "decode",
        "token ids to text",
        "Write the text of token ids exactly as it is, with no line end added.",
        encoding,
        content=ids,
    )
    decode.add_argument(
        "--errors",
        choices=["replace", "strict", "bytes"],
        default="replace",
        help="for bytes that are not UTF-8: U+FFFD in their place, an error, or the bytes as "
        "they are (default: %(default)s)",
    )
    decode.add_argument(
        "--skip-special-tokens", action="store_true", help="leave special tokens out"
    )
    truncate = add(
        "truncate",
        "cut text to a number of tokens",
        "Write as much of each file as fits, with no line end added.",
        encoding,
        special,
        _fit("grapheme"),
        content=text,
    )
    truncate.add_argument("--keep", choices=["start", "end", "both"], default="start")
    truncate.add_argument(
        "--marker", default="", metavar="TEXT", help="put where text was left out, and counted"
    )
    add(
        "split",
        "split text into chunks of a number of tokens",
        "Print a line of JSON for each chunk: its place in code points, its tokens, and its text. "
        "A file may have any size.",
        encoding,
        special,
        _fit("paragraph"),
        content=text,
    ).add_argument(
        "--overlap-tokens",
        type=int,
        default=0,
        metavar="N",
        help="the most tokens that a chunk shares with the one before it (default: 0)",
    )
    add(
        "inspect-text",
        "find what makes a count surprising",
        "Print what in each file makes its tokens surprising: control tokens that are spelled or "
        "nearly so, invisible characters, white space at the end, and more.",
        encoding,
        content=text,
    )
    add(
        "encodings",
        "list the server's encodings, or describe one",
        "List the server's encodings, or describe those that are named.",
    ).add_argument("names", nargs="*", metavar="NAME", help="a name or an alias")
    add(
        "health",
        "whether the server is serving",
        "Ask the server's health service; the exit status is 0 if it is serving and 1 otherwise.",
    )
    for name, summary in (others or {}).items():
        if name not in commands.choices:
            commands.add_parser(name, help=summary.replace("%", "%%"), add_help=False)
    return parser


class _Parser(argparse.ArgumentParser):
    """Keeps the layout of epilogs, and refuses abbreviated options: they break scripts later."""

    def __init__(self, **options: object) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)  # type: ignore[arg-type]  # argparse has no type for these


def _server() -> _Parser:
    parent = _Parser(add_help=False)
    parent.add_argument("--json", action="store_true", help="print JSON")
    group = parent.add_argument_group("server")
    group.add_argument(
        "--target", metavar="HOST:PORT", help=f"where the server is (default: {DEFAULT_TARGET})"
    )
    group.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"for each call (default: {DEFAULT_TIMEOUT_S:g}; none for an input larger than "
        f"{DEFAULT_MAX_UNARY_BYTES >> 20} MiB, which is streamed)",
    )
    group.add_argument("--api-key-file", metavar="FILE", help="a file that holds the API key")
    group.add_argument("--tls", action="store_true", help="use TLS, with gRPC's own roots")
    group.add_argument("--tls-ca", metavar="FILE", help="use TLS, trusting these roots (PEM)")
    group.add_argument("--tls-cert", metavar="FILE", help="use TLS with our certificate (PEM)")
    group.add_argument("--tls-key", metavar="FILE", help="the key of --tls-cert (PEM)")
    group.add_argument(
        "--tls-server-name", metavar="NAME", help="the name in the server's certificate"
    )
    return parent


def _encoding() -> _Parser:
    parent = _Parser(add_help=False)
    parent.add_argument(
        "-e",
        "--encoding",
        "--model",
        metavar="NAME",
        help="required: the name of an encoding, or of a model that uses it, such as o200k_base or "
        "gpt-4o",
    )
    parent.add_argument(
        "--expected-fingerprint",
        metavar="FINGERPRINT",
        help="fail unless the server's encoding has this fingerprint",
    )
    return parent


def _special() -> _Parser:
    parent = _Parser(add_help=False)
    group = parent.add_argument_group("special tokens in the text")
    group.add_argument(
        "--allowed-special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="make it a control token; may be repeated; 'all' for all that the server permits",
    )
    group.add_argument(
        "--disallowed-special",
        choices=["reject", "as-text"],
        help="the others: an error, or ordinary text (default: reject in encode, else as-text)",
    )
    parent.add_argument(
        "--add-special-tokens",
        action="store_true",
        help="add the encoding's template around each text, if the server permits",
    )
    return parent


def _fit(level: str) -> _Parser:
    parent = _Parser(add_help=False)
    parent.add_argument(
        "--max-tokens", type=int, required=True, metavar="N", help="the most tokens"
    )
    parent.add_argument(
        "--level",
        choices=["code_point", "grapheme", "word", "sentence", "line", "paragraph"],
        default=level,
        help="where to cut (default: %(default)s)",
    )
    return parent
