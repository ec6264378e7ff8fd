"""Where settings come from: flags, then `BYTEPAIR_*` variables, then a TOML file.

Each value keeps the name of its source, so that an error can say where the wrong one is.
"""

from __future__ import annotations

import argparse
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bytepair_engine.vocabulary.names import nearest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bytepair_server import __version__
from bytepair_server.config.settings import FILE_ONLY, Settings
from bytepair_server.config.tables import CallerTable, ChatFormatTable, QuotaTable
from bytepair_server.config.types import Text, problem

PREFIX: Final = "BYTEPAIR_"
CONFIG_VARIABLE: Final = "BYTEPAIR_CONFIG"

#: The largest file of keys or certificates, hundreds of times a usual one.
MAX_FILE_BYTES: Final = 16 << 20

#: Variables of the command `bytepair`, which a health probe has in the server's environment.
_CLIENTS: Final = frozenset(
    {
        *("BYTEPAIR_API_KEY", "BYTEPAIR_ENCODING", "BYTEPAIR_TARGET", "BYTEPAIR_TLS_CA"),
        *("BYTEPAIR_TLS_CERT", "BYTEPAIR_TLS_KEY", "BYTEPAIR_TLS_SERVER_NAME"),
    }
)
#: The settings that name a file: a path in a flag or a variable is relative to where the command
#: is run, and one in the file to the file's folder.
_PATHS: Final = frozenset(name for name in Settings.model_fields if name.endswith("_file"))

#: The settings that are tables, and what is in each of these.
_TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "callers": CallerTable,
    "chat_formats": ChatFormatTable,
    "quotas": QuotaTable,
}

_DESCRIPTION: Final = """\
Tokenizer service over gRPC: exact token ids and counts for published encodings.

A setting may be given as a flag, as an environment variable, or in a TOML file; the first of
these wins. On SIGTERM or Ctrl-C the server finishes running calls, then stops.
"""
_EPILOG: Final = """\
examples:
  bytepair-server                                        serve the built-in encodings
  bytepair-server --log-format console --reflection      the same, for a person at a terminal
  bytepair-server --config bytepair.toml --check-config  verify a configuration, then exit
"""


class ConfigurationError(Exception):
    """A setting is wrong. The message names it, its source and the remedy, one line for each."""


@dataclass(frozen=True)
class Configuration:
    """Verified settings and where they came from.

    Attributes:
        settings: The settings.
        file: The file that was read; "" if none was.
        base_dir: What relative paths of the file are relative to.
        check_only: `--check-config` was given.
        ignored_variables: `BYTEPAIR_*` variables that are ignored, each with the reason. They are
            not errors: Kubernetes sets such variables for a Service that is called "bytepair".
    """

    settings: Settings
    file: str
    base_dir: Path
    check_only: bool
    ignored_variables: Mapping[str, str]

    def with_source(self, message: str) -> str:
        """Add the file to an error that begins with a setting that only a file can have."""
        setting, colon, rest = message.partition(": ")
        if setting.partition(".")[0] not in FILE_ONLY:
            return message
        return f"{setting} (from file {self.file}){colon}{rest}"


def contents(setting: str, path: Path) -> bytes:
    """The content of the file at `path`, which `setting` names.

    Raises:
        ConfigurationError: It cannot be read, is larger than MAX_FILE_BYTES, or is not a file:
            reading a pipe may block for ever.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigurationError(f"{setting} {path}: is not a file")
        if found.st_size > MAX_FILE_BYTES:
            raise ConfigurationError(f"{setting} {path}: is larger than {MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path holds a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{setting} {path}: cannot be read: {reason}") from None


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> Configuration:
    """Read and verify all sources; `arguments` is the command line without the program's name.

    Raises:
        ConfigurationError: A value, a flag or a source is wrong.
        SystemExit: `--help` or `--version`, or a flag lacks its value.
    """
    flags = _flags(arguments)
    path = flags.pop("config", environment.get(CONFIG_VARIABLE))
    if path == "":  # such as an unset variable of a script: the defaults need no credentials
        raise ConfigurationError(
            f"--config, {CONFIG_VARIABLE}: must name a file; leave it out for none"
        )
    check_only = flags.pop("check_config", False)

    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if path:
        for name, value in _read_file(Path(path)).items():
            values[name], origin[name] = _from_file(name, value, Path(path)), f"file {path}"
    ignored = {}
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in (CONFIG_VARIABLE, *_CLIENTS):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in Settings.model_fields.keys() - FILE_ONLY:
            value = _from_here(name, environment[variable])
            values[name], origin[name] = value, f"variable {variable}"
        elif name in FILE_ONLY:
            ignored[variable] = f"{name} can only be set in the file"
        else:
            similar = nearest(name, Settings.model_fields.keys() - FILE_ONLY)
            hint = f"; did you mean {_variable(similar[0])}?" if similar else ""
            ignored[variable] = f"no such setting{hint}"
    for name, value in flags.items():
        values[name], origin[name] = _from_here(name, value), f"flag {_flag(name)}"

    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError("\n".join(_explain(error, origin))) from None
    file = path or ""
    return Configuration(settings, file, Path(file).parent, check_only, ignored)


def _from_here(name: str, value: str) -> Text:
    return Text(Path(value).absolute() if name in _PATHS and value else value)


def _from_file(name: str, value: object, file: Path) -> object:
    if name == "grpc_address" and str(value).startswith("unix:") and value != "unix:":
        return f"unix:{file.parent / str(value).removeprefix('unix:').removeprefix('//')}"
    return value  # other paths are used with `base_dir`


def _read_file(path: Path) -> dict[str, Any]:
    try:
        # Editors on Windows begin a file with a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"cannot read file {path}: {error.strerror}") from None
    except RecursionError:
        raise ConfigurationError(f"file {path} is not TOML: it is nested too deeply") from None
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        raise ConfigurationError(f"file {path} is not TOML: {error}") from None


def _explain(error: ValidationError, origin: Mapping[str, str]) -> list[str]:
    lines = []
    for fault in error.errors(include_url=False):
        name = str(fault["loc"][0])
        key = ".".join(str(part) for part in fault["loc"])
        source = origin.get(name, "default")
        if fault["type"] == "extra_forbidden":
            # A table of the file has settings of its own.
            known = _TABLES[name].model_fields if name in _TABLES else Settings.model_fields
            last = str(fault["loc"][-1])
            hint = _hint(last, known)
            is_setting = last in Settings.model_fields.keys() - FILE_ONLY
            if not hint and (is_setting or isinstance(fault["input"], dict)):
                hint = "; settings stand in no table, at the top of the file"
            lines.append(f"{key} (from {source}): no such setting{hint}")
            continue
        lines.append(f"{key} (from {source}): {problem(fault)}. The setting: {described(name)}")
    return lines


def described(name: str) -> str:
    """The description of a setting, on one line."""
    return " ".join(str(Settings.model_fields[name].description).split())


def _hint(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    similar = [each for each in known if each.startswith(f"{name}_")] or nearest(name, known)
    return f"; did you mean {similar[0]}?" if similar else ""


def _flags(arguments: Sequence[str]) -> dict[str, Any]:
    found, unknown = _parser().parse_known_args(arguments)
    if unknown:
        flag = unknown[0].partition("=")[0]
        known = ["--config", "--check-config", *map(_flag, Settings.model_fields)]
        fault = f"no such flag{_hint(flag, known) or '.'}"
        if flag in map(_flag, FILE_ONLY):
            fault = "not a flag; set it in the file that --config names."
        raise ConfigurationError(f"{flag}: {fault} See --help")
    return vars(found)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bytepair-server",
        usage="%(prog)s [--config FILE] [--check-config] [--SETTING VALUE ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bytepair-server {__version__}")
    parser.add_argument(
        "--config", metavar="FILE", help=f"TOML file of settings. [{CONFIG_VARIABLE}]"
    )
    parser.add_argument(
        "--check-config",
        action="store_true",
        help="Verify settings, files and encodings, then exit.",
    )
    group = parser.add_argument_group(
        "settings", "The brackets contain the environment variable and the default."
    )
    for name, field in Settings.model_fields.items():
        if name not in FILE_ONLY:
            _add_flag(group, name, field)
    return parser


def _add_flag(group: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, tuple):
        shown = "all built in" if default else "none"
    elif isinstance(default, bool):
        shown = "on" if default else "off"
    else:
        shown = "none" if default is None else str(default)
    text = f"{described(name)} [{_variable(name)}, {shown}]".replace("%", "%%")
    if isinstance(default, bool):
        # Alone it turns the setting on; "false" after it, off, as in a variable.
        group.add_argument(_flag(name), nargs="?", const="true", metavar="BOOL", help=text)
    else:
        group.add_argument(_flag(name), metavar="VALUE", help=text)
