"""Commands of other distributions: found by their entry points, imported when they are run.

A distribution adds a command to `bytepair` by an entry point of the group `bytepair.commands`. Its
name is the command's, and it names a module or an object with two members: `SUMMARY`, one line for
`bytepair --help`, and `run(arguments) -> int`, which takes what follows the command's name and
returns the exit status. A command of the client's own cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from bytepair_client._cli.output import CommandError, ExitStatus

GROUP: Final = "bytepair.commands"

#: The commands of this project's other distributions, which a person may ask for before they are
#: installed.
_TOOLS: Final = (
    "audit",
    "corpus",
    "count-pretokens",
    "evaluate",
    "explain",
    "extend",
    "inspect",
    "train",
)
KNOWN: Final = dict.fromkeys(_TOOLS, "bytepair-tools")


class Extension(Protocol):
    """What an entry point names."""

    SUMMARY: str

    def run(self, arguments: Sequence[str]) -> int: ...


def load(name: str) -> Extension | None:
    """Import the command of that name.

    Returns:
        It, or None if no distribution here has such a command.
    Raises:
        CommandError: It cannot be imported, or it comes with a known distribution that is not
            installed.
    """
    # Imported here, because no command of the client's own should pay for it.
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        try:
            return cast(Extension, entry.load())
        except (ImportError, AttributeError) as error:
            raise CommandError(f"the command {name!r} cannot be imported: {error}") from None
    if name in KNOWN:
        raise CommandError(
            f"the command {name!r} comes with another distribution, {KNOWN[name]}: install it "
            f"beside bytepair-client, for example by pip install {KNOWN[name]}",
            ExitStatus.USAGE,
        )
    return None


def summaries() -> dict[str, str]:
    """The summary of each installed command, by name; one that cannot be imported says so."""
    from importlib.metadata import entry_points

    found = {}
    for name in sorted(entry_points(group=GROUP).names):
        try:
            extension = load(name)
            found[name] = extension.SUMMARY if extension else ""
        except CommandError as error:
            found[name] = str(error)
    return found
