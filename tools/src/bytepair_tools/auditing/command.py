"""The command `bytepair audit`: check a vocabulary, interactively or in CI."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bytepair_tools.auditing.checks import TITLES, Check, Finding, Texts, audit
from bytepair_tools.auditing.vocabulary import Token, Vocabulary
from bytepair_tools.shared.declaration import toml_string
from bytepair_tools.shared.encodings import ENCODING_HELP, add_file_options, one_encoding
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.progress_line import ProgressLine
from bytepair_tools.shared.table import table
from bytepair_tools.shared.visible import visible, visible_bytes
from bytepair_tools.texts.options import (
    FILES_HELP,
    add_document_options,
    documents_of,
    natural_number,
)

#: The exit status if a limit is exceeded.
EXCEEDED: Final = 3

#: Default number of tokens listed for each check; JSON has all.
DEFAULT_MAX_LISTED: Final = 10

_DESCRIPTION: Final = """\
Check a vocabulary for problems: tokens that are never produced on texts, that merging does not
produce, that are not complete UTF-8, and others. Single bytes are not checked, because every
byte-level vocabulary has them. Without --on, only the checks that need no texts run.
"""

_EPILOG: Final = """\
examples:
  bytepair audit o200k_base --on texts/*.txt
  bytepair audit r50k_base --on texts/*.txt --flag unused >> bytepair-server.toml
  bytepair audit mine/bytepair.toml --on held-out.jsonl.gz --max-unused 20% --max-unreachable 0

docs/training.md defines each check.

exit status: 0; 1 if input was rejected; 2 for wrong usage; 3 if a limit is exceeded
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """The accepted number of tokens that a check finds, or their share."""

    value: float
    is_share: bool

    @classmethod
    def parsed(cls, text: str) -> Limit:
        """Parse "120" or "2.5%"."""
        found = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?)%", text, re.ASCII)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a percentage")
        number, percent = found.groups()
        return cls(int(number), False) if number else cls(float(percent) / 100, True)

    def is_exceeded(self, check: Check) -> bool:
        """Whether a check found more; False if it did not run."""
        if check.findings is None:
            return False
        found = (check.share or 0) if self.is_share else len(check.findings)
        return found > self.value

    def __str__(self) -> str:
        return f"{100 * self.value:g}%" if self.is_share else f"{self.value:,.0f}"


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    limits: dict[str, Limit] = {
        name: limit
        for name in TITLES
        if (limit := getattr(args, f"max_{name.replace('-', '_')}")) is not None
    }
    vocabulary, texts, checks = _audit(args)
    for check in checks:
        if check.findings is not None:
            continue
        if check.name in limits:
            raise Failure(f"--max-{check.name}: this check cannot run: {check.why_not}")
        if check.name in args.flag:
            raise Failure(f"--flag {check.name}: this check cannot run: {check.why_not}")
    exceeded = [c for c in checks if c.name in limits and limits[c.name].is_exceeded(c)]
    if args.flag:
        sys.stdout.write(_flagged(vocabulary.encoding.name, checks, args.flag))
    elif args.json:
        fields = _fields(vocabulary, texts, checks, exceeded)
        sys.stdout.write(json.dumps(fields) + "\n")
    else:
        lines = _lines(vocabulary, texts, checks, limits, args.limit)
        sys.stdout.write("\n".join(lines) + "\n")
    for check in exceeded:
        assert check.findings is not None
        sys.stderr.write(
            f"bytepair audit: {check.name}: {len(check.findings):,} tokens exceed the limit, "
            f"{limits[check.name]}\n"
        )
    return EXCEEDED if exceeded else 0


def _audit(args: argparse.Namespace) -> tuple[Vocabulary, Texts | None, list[Check]]:
    encoding = one_encoding(args.encoding, pattern=args.pattern, encoder_file=args.encoder_file)
    vocabulary = Vocabulary(encoding)
    texts = None
    if args.on:
        documents = documents_of(args)
        progress = ProgressLine("reading", documents.size(args.on))
        texts = Texts()
        try:
            texts.read(encoding, args.on, documents, progress.show)
        finally:
            progress.end()
    progress = ProgressLine("checking", len(vocabulary.tokens), unit="tokens")
    try:
        return vocabulary, texts, audit(vocabulary, texts, progress.show)
    finally:
        progress.end()


def longest(tokens: Sequence[Token], number: int) -> list[Token]:
    """Return the tokens with the most bytes, the longest first."""
    return sorted(tokens, key=lambda token: (-len(token.data), token.id))[:number]


def _lines(
    vocabulary: Vocabulary,
    texts: Texts | None,
    checks: Sequence[Check],
    limits: dict[str, Limit],
    max_listed: int,
) -> Iterator[str]:
    encoding = vocabulary.encoding
    yield (
        f"{visible(encoding.name)}: {len(vocabulary.tokens):,} tokens beside single bytes, "
        f"{len(encoding.special_tokens):,} special tokens"
    )
    if texts is not None:
        yield f"texts: {texts.bytes:,} bytes, {texts.produced.total():,} tokens"
    yield ""
    rows = []
    for check in checks:
        limit = limits.get(check.name)
        rows.append(
            [
                check.name,
                check.title,
                "–" if check.findings is None else f"{len(check.findings):,}",
                "–" if check.share is None else f"{check.share:.2%}",
                "" if limit is None else f"{limit}{' EXCEEDED' * limit.is_exceeded(check)}",
            ]
        )
    yield from table(["check", "tokens that are", "found", "share", "limit"], rows, left=(0, 1))
    for check in checks:
        if check.findings:
            yield ""
            yield f"{check.name}: {check.title}"
            yield from _listed(check.findings, max_listed)
    yield ""
    yield "longest: most bytes"
    tokens = longest(vocabulary.tokens, max_listed)
    yield from _listed([Finding(t.id, t.data, f"{len(t.data)} bytes") for t in tokens], max_listed)


def _listed(findings: Sequence[Finding], max_listed: int) -> Iterator[str]:
    rows = [[str(f.id), f'"{visible_bytes(f.token)}"', f.note] for f in findings[:max_listed]]
    width = max((len(row[0]) for row in rows), default=0)
    for number, token, note in rows:
        yield f"  {number:>{width}}  {token}" + f"  {note}" * bool(note)
    if (more := len(findings) - max_listed) > 0:
        yield f"  and {more:,} more: --limit N lists N, --json all"


def _fields(
    vocabulary: Vocabulary,
    texts: Texts | None,
    checks: Sequence[Check],
    exceeded: Sequence[Check],
) -> dict[str, Any]:
    encoding = vocabulary.encoding
    return {
        "encoding": encoding.name,
        "fingerprint": encoding.fingerprint,
        "tokens": len(vocabulary.tokens),
        "special_tokens": len(encoding.special_tokens),
        "text_bytes": None if texts is None else texts.bytes,
        "text_tokens": None if texts is None else texts.produced.total(),
        "checks": {
            check.name: {
                "found": None if check.findings is None else len(check.findings),
                "share": check.share,
                "is_exceeded": check in exceeded,
                "tokens": None if check.findings is None else [*map(_finding, check.findings)],
                "skipped": check.why_not or None,
            }
            for check in checks
        },
        "longest": [
            _finding(Finding(t.id, t.data)) | {"bytes": len(t.data)}
            for t in longest(vocabulary.tokens, DEFAULT_MAX_LISTED)
        ],
    }


def _flagged(name: str, checks: Sequence[Check], selected: Sequence[str]) -> str:
    """Return the tokens that the `selected` checks found as TOML: the setting `flagged_tokens`."""
    found = {f.id for check in checks if check.name in selected for f in check.findings or ()}
    return f"[flagged_tokens]\n{toml_string(name)} = {sorted(found)}\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "token": visible_bytes(finding.token),
        "data": finding.token.hex(),
        "note": finding.note,
    }


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair audit",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("encoding", metavar="ENCODING", help=ENCODING_HELP)
    parser.add_argument("--on", nargs="+", default=[], metavar="FILE", help=FILES_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON, with every token")
    parser.add_argument(
        "--flag",
        action="append",
        choices=[*TITLES],
        default=[],
        metavar="CHECK",
        help="print only the tokens that this check finds, as the server's setting flagged_tokens; "
        "repeatable",
    )
    parser.add_argument(
        "--limit",
        type=natural_number,
        default=DEFAULT_MAX_LISTED,
        metavar="N",
        help=f"list at most N tokens of each check ({DEFAULT_MAX_LISTED})",
    )
    limits = parser.add_argument_group(
        "limits", "the accepted number of tokens for each check, or their share"
    )
    for name, title in TITLES.items():
        limits.add_argument(f"--max-{name}", type=Limit.parsed, metavar="N|N%", help=title)
    add_file_options(parser)
    add_document_options(parser)
    return parser
