"""The examples of `docs/client.md` run, and its tables show the real defaults."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import bytepair_client
from bytepair_client import TokenizerClient
from bytepair_client._cli.output import ExitStatus
from support.serving import RunningServer

GUIDE = (Path(__file__).parents[2] / "docs/client.md").read_text(encoding="utf-8")


def test_the_examples_give_what_they_show(server: RunningServer) -> None:
    guide = GUIDE.replace("localhost:50051", server.target)
    test = doctest.DocTestParser().get_doctest(guide, {}, "docs/client.md", None, None)
    assert len(test.examples) > 10
    result = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    ).run(test, clear_globs=False)
    test.globs["client"].close()
    assert result.failed == 0


def test_the_examples_of_docstrings_give_what_they_show() -> None:
    result = doctest.testmod(bytepair_client)
    assert (result.attempted, result.failed) == (1, 0)


def test_every_method_is_in_the_table_with_its_defaults() -> None:
    shown = dict(re.findall(r"`(\w+)\(([^`]*)\)`", GUIDE.partition("### Special")[0]))
    public = {name for name in vars(TokenizerClient) if not name.startswith("_")}
    assert shown.keys() == public - {"with_raw_response"}
    for name, arguments in shown.items():
        parameters = inspect.signature(getattr(TokenizerClient, name)).parameters
        for argument in arguments.split(", ") if arguments else ():
            parameter, _, default = argument.partition("=")
            if default:
                assert repr(parameters[parameter].default).replace("'", '"') == default


def test_every_option_is_in_the_table_with_its_default() -> None:
    table = GUIDE.partition("### Options of the client")[2].partition("\n\n## ")[0]
    shown: dict[str, str] = {}
    for names, default in re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE):
        shown |= dict.fromkeys(re.findall(r"`(\w+)`", names), default.strip("`"))
    parameters = dict(inspect.signature(TokenizerClient).parameters)
    written = {
        "()": "none",
        "1048576": "1 MiB",
        "67108864": "64 MiB",
        "10.0": "10 s",
        "20.0": "20 s",
    }
    expected = {
        name: written.get(shown_as := repr(parameter.default).replace("'", '"'), shown_as)
        for name, parameter in parameters.items()
        if name not in ("others", "unknown")  # only for their errors
    }
    assert shown == expected


def test_every_exit_status_is_documented() -> None:
    table = GUIDE.partition("| exit status |")[2].partition("\n\n")[0]
    rows = ", ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE))
    assert [int(number) for number in rows.split(", ")] == [status.value for status in ExitStatus]
