"""The options of the commands, as the arguments of `argparse`."""

from __future__ import annotations

from typing import Any, get_args

from bytepair_client._operations.context import Keep
from bytepair_client._operations.requests import Level

TEXT = "UTF-8 text"
IDS = "ids, separated by white space or commas, or a JSON list,"
CHAT = 'JSON, a list of messages or {"messages": …, "tools": …},'

#: Options, each as the arguments of `add_argument`.
Options = tuple[tuple[tuple[str, ...], dict[str, Any]], ...]


def option(names: str, explanation: str, **others: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """One option. `names` ends with the name of its value, if it has one."""
    words = names.split()
    if words[-1].isupper():
        others["metavar"] = words.pop()
    return tuple(words), {"help": explanation, **others}


ENCODING: Options = (
    option(
        "-e --encoding --model NAME",
        "the name of an encoding, or of a model that uses it, such as o200k_base or gpt-4o; "
        "required, or $BYTEPAIR_ENCODING",
    ),
    option(
        "--expected-fingerprint FINGERPRINT",
        "fail unless the server's encoding has this fingerprint",
    ),
)

SPECIAL: Options = (
    option(
        "--allowed-special TOKEN",
        "make this special token in the text a control token; may be repeated; 'all' by itself "
        "for all that the server permits",
        action="append",
        default=[],
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
CHAT_FORMAT: Options = (
    option(
        "--format NAME",
        "the chat format, such as openai-chat; 'bytepair chat-formats' lists them",
        required=True,
    ),
    option(
        "--expected-format-fingerprint FINGERPRINT",
        "fail unless the chat format has this fingerprint",
        default="",
    ),
)
TRUNCATING: Options = (
    option(
        "--keep",
        "which part to keep (default: %(default)s)",
        choices=get_args(Keep),
        default="start",
    ),
    option("--marker TEXT", "text to put where text was omitted; its tokens count", default=""),
)
OVERLAP = option(
    "--overlap-tokens N",
    "maximum number of tokens that a chunk shares with the one before it (default: 0)",
    type=int,
    default=0,
)


def size(level: str) -> Options:
    """The options for a number of tokens, and for the level at which text is cut."""
    return (
        option(
            "--max-tokens N", "maximum number of tokens of each result", type=int, required=True
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
