"""The main function: parse the arguments, connect, run the command, and report errors.

Other distributions add commands as entry points of the group `bytepair.commands`, named like the
command. An entry point is a module or object with two members: `SUMMARY`, one line for
`bytepair --help`, and `run(arguments) -> int`, which takes the arguments after the command's name
and returns the exit status. The client's own commands cannot be replaced.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from bytepair_client import __version__
from bytepair_client import _errors as errors
from bytepair_client._cli.commands import COMMANDS
from bytepair_client._cli.options import Options, option
from bytepair_client._cli.output import LATER, CommandError, ExitStatus, in_options
from bytepair_client._client import TokenizerClient
from bytepair_client._options import DEFAULT_MAX_UNARY_BYTES, DEFAULT_TARGET, DEFAULT_TIMEOUT_S, Tls

GROUP: Final = "bytepair.commands"

#: The commands of bytepair-tools, for the message if it is not installed.
TOOLS: Final = frozenset(
    ("audit", "corpus", "count-pretokens", "evaluate", "explain", "extend", "inspect", "train")
)

TARGET_VARIABLE = "BYTEPAIR_TARGET"
ENCODING_VARIABLE = "BYTEPAIR_ENCODING"
API_KEY_VARIABLE = "BYTEPAIR_API_KEY"
#: The variables of the environment, by the option that they replace.
VARIABLES = {
    name: f"BYTEPAIR_{name.upper()}"
    for name in ("target", "encoding", "tls_ca", "tls_cert", "tls_key", "tls_server_name")
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

_JSON = option("--json", "print JSON", action="store_true")
_SERVER: Options = (
    option("--target HOST:PORT", f"address of the server (default: {DEFAULT_TARGET})"),
    option(
        "--timeout SECONDS",
        f"deadline of each call (default: {DEFAULT_TIMEOUT_S:g}; none for an input of more than "
        f"{DEFAULT_MAX_UNARY_BYTES >> 20} MiB, if the command can stream it)",
        type=float,
    ),
    option("--api-key-file FILE", "a file that holds the API key"),
    option("--wait-for-quota", "wait while this caller's quota is used up", action="store_true"),
    option("--tls", "use TLS, and trust public certificate authorities", action="store_true"),
    option("--tls-ca FILE", "use TLS, and trust these root certificates (PEM)"),
    option("--tls-cert FILE", "use TLS with this client certificate (PEM)"),
    option("--tls-key FILE", "the private key of --tls-cert (PEM)"),
    option("--tls-server-name NAME", "the name that the server's certificate must have"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The arguments without the program's name; None for those of the process.
    Returns:
        The exit status, as `bytepair --help` describes it.
    """
    _open_standard_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    command = arguments[0] if arguments else ""
    args = argparse.Namespace()
    try:
        try:
            if command not in COMMANDS:
                return _run_other(command, arguments)
            args, unknown = _parser({}).parse_known_args(arguments)
            if unknown:
                _reject(args.parser, command, unknown)
            with _connect(args) as client:
                return COMMANDS[command].run(client, args)
        finally:
            sys.stdout.flush()  # now, so that a fault has its status, for help too
    except (CommandError, errors.TokenizerError) as error:
        message = in_options(str(error))
        sys.stderr.write(f"bytepair: {message}{_notes(error)}{_advice(error, message)}\n")
        return _status(error, command, args)
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return ExitStatus.BROKEN_PIPE
    except OSError as error:
        _drop_output()
        stopped = _notes(error)
        sys.stderr.write(f"bytepair: cannot write the output: {error.strerror}{stopped}\n")
        return ExitStatus.FAILED


def _open_standard_streams() -> None:
    """Open those of the descriptors 0 to 2 that are closed: otherwise a file or a connection would
    get the number, and receive what is written to standard error."""
    # Reading from 0 and writing to 1 fail as before, with an error of the system.
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            kind: Literal["r", "w"] = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, kind, encoding="utf-8", closefd=False))


def _drop_output() -> None:
    """Discard output that cannot be written: Python would try again at the end, and report it."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_other(command: str, arguments: Sequence[str]) -> int:
    """Run a command of another distribution, or let the parser report the error."""
    if command and not command.startswith("-"):
        extension = _load(command)
        if extension is not None:
            return int(extension.run(arguments[1:]))
    # Imported here because the client's own commands do not need it.
    from difflib import get_close_matches

    summaries = _summaries()
    parser = _parser(summaries)
    similar = get_close_matches(command, [*COMMANDS, *summaries], 1)
    if similar:
        parser.error(f"unknown command {command!r}; did you mean {similar[0]}?")
    parser.parse_args(arguments)
    raise AssertionError("unreachable: the parser exits for an unknown command")


def _reject(parser: argparse.ArgumentParser, command: str, unknown: Sequence[str]) -> NoReturn:
    """Report the unknown arguments of a command, with its usage."""
    from difflib import get_close_matches

    known = [flag for flags, _ in (*COMMANDS[command].options, *_SERVER) for flag in flags]
    similar = get_close_matches(unknown[0].partition("=")[0], known, 1)
    hint = f"; did you mean {similar[0]}?" if similar else ""
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _parser(others: Mapping[str, str]) -> argparse.ArgumentParser:
    """The parser. `others` are the summaries of other distributions' commands, only listed."""
    # Abbreviations would break with later options.
    layout: Any = {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(
        prog="bytepair", description=_DESCRIPTION, epilog=_EPILOG, **layout
    )
    parser.add_argument("--version", action="version", version=f"bytepair {__version__}")
    group = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        made = group.add_parser(
            name, help=command.summary, description=command.description, **layout
        )
        made.set_defaults(parser=made)
        for flags, arguments in (*command.options, _JSON):
            made.add_argument(*flags, **arguments)
        server = made.add_argument_group("server")
        for flags, arguments in _SERVER:
            server.add_argument(*flags, **arguments)
    for name, summary in others.items():
        if name not in COMMANDS:
            group.add_parser(name, help=summary.replace("%", "%%"), add_help=False)
    return parser


def _connect(args: argparse.Namespace) -> TokenizerClient:
    used = {} if args.api_key_file is not None else {"--api-key-file": API_KEY_VARIABLE}
    for name, variable in VARIABLES.items():
        if name in args and not getattr(args, name):
            setattr(args, name, os.environ.get(variable) or None)
            if getattr(args, name):
                used["--" + name.replace("_", "-")] = variable
    if "encoding" in args and not args.encoding:
        raise CommandError(
            f"which encoding? Give --encoding NAME, or set {ENCODING_VARIABLE}; "
            "'bytepair encodings' lists the server's encodings",
            ExitStatus.USAGE,
        )
    tls = args.tls_ca, args.tls_cert, args.tls_key, args.tls_server_name
    try:
        return TokenizerClient(
            args.target or DEFAULT_TARGET,
            encoding=getattr(args, "encoding", None),
            expected_fingerprint=getattr(args, "expected_fingerprint", None),
            timeout=DEFAULT_TIMEOUT_S if args.timeout is None else args.timeout,
            api_key=_api_key(args.api_key_file),
            tls=Tls(*tls) if any(tls) else args.tls,
            wait_for_quota=args.wait_for_quota,
            user_agent="bytepair-cli",
        )
    except errors.InvalidOption as error:
        setting, colon, problem = in_options(str(error)).partition(": ")
        message = f"{used.get(setting, setting)}{colon}{problem}"
        raise CommandError(message, ExitStatus.USAGE) from None


def _api_key(file: str | None) -> str | None:
    if file is None:
        return os.environ.get(API_KEY_VARIABLE) or None
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
        if len(key.split()) == 1:
            return key
        problem = "not an API key: it " + ("has several words" if key else "is empty")
    except OSError as error:
        problem = str(error.strerror)
    except UnicodeDecodeError:
        problem = "not an API key: it is not text"
    raise CommandError(f"--api-key-file: {file}: {problem}", ExitStatus.USAGE)


def _notes(error: Exception) -> str:
    return "".join(getattr(error, "__notes__", ()))


def _advice(error: Exception, message: str) -> str:
    """A remedy, if the message does not name one."""
    match error:
        case errors.Unavailable() if "Permission denied" in message:
            return "\nThis user may not open the socket: see the server's unix_socket_mode."
        case errors.Unavailable() if "--tls" not in message and "certificate" not in message:
            return (
                f"\nIs the server running? 'bytepair-server' starts one; --target or "
                f"{TARGET_VARIABLE} names another."
            )
        case errors.DeadlineExceeded():
            return "\nIs the target right? --timeout SECONDS gives it more time."
        case errors.UnknownEncoding() if "bytepair encodings" not in message:
            return "\n'bytepair encodings' lists the server's encodings."
        case errors.Unauthenticated():
            return (
                f"\nGive a key that the server knows, by --api-key-file or {API_KEY_VARIABLE}, or "
                "a certificate, by --tls-cert and --tls-key."
            )
    return ""


def _status(error: Exception, command: str, args: argparse.Namespace) -> ExitStatus:
    match error:
        case CommandError():
            return error.status
        case _ if isinstance(error, LATER) and command != "health":
            return ExitStatus.TRY_LATER
        case errors.InvalidOption() if error.code is None or error.field in vars(args):
            return ExitStatus.USAGE
    return ExitStatus.FAILED


def _load(name: str) -> Any:
    """Import the command of this name; None if no installed distribution has it. Raises
    CommandError if it cannot be imported, or belongs to bytepair-tools, which is not installed."""
    # Imported here because the client's own commands do not need it.
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        try:
            return entry.load()
        except (ImportError, AttributeError) as error:
            raise CommandError(f"the command {name!r} cannot be imported: {error}") from None
    if name in TOOLS:
        raise CommandError(
            f"the command {name!r} comes with another distribution, bytepair-tools: install it "
            "beside bytepair-client, by pip install ./tools ./engine in the repository",
            ExitStatus.USAGE,
        )
    return None


def _summaries() -> dict[str, str]:
    """The summary of each installed command by name, or the error of its import."""
    from importlib.metadata import entry_points

    found = {}
    for name in sorted(entry_points(group=GROUP).names):
        try:
            found[name] = _load(name).SUMMARY
        except CommandError as error:
            found[name] = str(error)
    return found
