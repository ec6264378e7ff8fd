"""The commands for text that must fit: truncate, split and inspect-text."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from bytepair_client._cli.inputs import STANDARD_INPUT, opened
from bytepair_client._cli.output import ExitStatus, write_text
from bytepair_client._cli.results import Results
from bytepair_client._client import TokenizerClient


def truncate(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair truncate`."""
    results = Results(args.json)
    for name in args.files:
        with results.of(name) as result, opened(name, writes=not args.json) as source:
            answer = client.with_raw_response.truncate(
                "".join(source.text()),
                args.max_tokens,
                keep=args.keep,
                level=args.level,
                marker=args.marker,
                **special_options(args),
            )
            result.answered(answer)
            result.fields |= {
                "text": answer.text,
                "count": answer.count,
                "truncated": answer.truncated,
                "kept": [[part.start, part.end] for part in answer.kept],
            }
            result.data = answer.text.encode()
    results.print_json()
    return results.status


def split(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair split`: one line of JSON for each chunk, as they come."""
    results = Results(as_json=False)
    for name in args.files:
        with results.of(name), opened(name, writes=True) as source:
            chunks = client.split_stream(
                source.text(),
                args.max_tokens,
                overlap_tokens=args.overlap_tokens,
                level=args.level,
                timeout=args.timeout,
                **special_options(args),
            )
            for chunk in chunks:
                named = {} if name == STANDARD_INPUT else {"file": name}
                write_text(json.dumps({**named, **asdict(chunk)}, ensure_ascii=False) + "\n")
    return results.status


def inspect_text(client: TokenizerClient, args: argparse.Namespace) -> ExitStatus:
    """`bytepair inspect-text`."""
    results = Results(args.json)
    for name in args.files:
        with results.of(name) as result, opened(name) as source:
            found = client.inspect("".join(source.text()))
            result.fields |= asdict(found)
            lines = [
                f"{finding.start}-{finding.end} {finding.code}"
                + (f" {finding.token}" if finding.token else "")
                + ("" if finding.code_point is None else f" U+{finding.code_point:04X}")
                for finding in found.findings
            ]
            lines.append(
                f"{found.count} tokens, of which {found.stable_tokens} stay whatever follows"
            )
            prefix = "" if name == STANDARD_INPUT else f"{name}: "
            result.line = "\n".join(prefix + line for line in lines)
    results.print_json()
    return results.status


def special_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of methods that say what special tokens in text become."""
    allowed = args.allowed_special
    options: dict[str, Any] = {
        "allowed_special": "all" if "all" in allowed else frozenset(allowed),
        "add_special_tokens": args.add_special_tokens,
    }
    if args.disallowed_special is not None:  # otherwise the default of the operation
        options["disallowed_special"] = "all" if args.disallowed_special == "reject" else ()
    return options
