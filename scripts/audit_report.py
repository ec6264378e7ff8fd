"""The report of an audit: what passed, what failed, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """The results of an audit.

    Attributes:
        good: What was checked and is right, one line each.
        wrong: What is wrong.
        unchecked: What could not be checked, and why.
    """

    good: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the report for people."""
        marked = {"ok": self.good, "WRONG": self.wrong, "NOT CHECKED": self.unchecked}
        return "".join(f"{mark}: {line}\n" for mark, lines in marked.items() for line in lines)

    def status(self, *, allow_unchecked: bool) -> int:
        """The exit status."""
        if self.wrong:
            return 1
        return 2 if self.unchecked and not allow_unchecked else 0
