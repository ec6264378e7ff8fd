"""The command `bytepair inspect`: describe vocabulary files, and print their configuration."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bytepair_engine import EncodingSpec, VocabularyError
from bytepair_engine.inspection import Inspection, inspect_file

from bytepair_tools.shared.declaration import declaration
from bytepair_tools.shared.encodings import add_file_options, name_of_file
from bytepair_tools.shared.failure import USAGE, Failure

#: Maximum number of tokens listed, except in JSON.
MAX_LISTED: Final = 20

_DESCRIPTION: Final = """\
Describe vocabulary files: their format, content and processing of text. Print the lines of a
server's configuration file that declare them. The format is detected from the content, never from
the name; a file may be gzip. No server is contacted.
"""

_EPILOG: Final = """\
formats: tiktoken's rank files; GPT-2's merges, with --encoder-file; tokenizer.json of Hugging
Face's tokenizers, with a BPE model; SentencePiece models of type BPE; Mistral's Tekken files.

examples:
  bytepair inspect tokenizer.json
  bytepair inspect --name llama-2 tokenizer.model
  bytepair inspect --pattern llama3 llama3.tiktoken
  bytepair inspect --pattern gpt2 --encoder-file vocab.json merges.txt

exit status: 0; 1 if a file was rejected; 2 for wrong usage
"""


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status: 0, or 1 if a file was rejected."""
    if args.name and len(args.files) > 1:
        raise Failure("--name needs a single file, and several are given", USAGE)
    status = 0
    results: list[dict[str, Any]] = []
    for file in args.files:
        spec = EncodingSpec(
            name=args.name or name_of_file(file),
            file=file,
            encoder_file=args.encoder_file,
            pattern=args.pattern,
            also_special=tuple(args.also_special),
        )
        try:
            found = inspect_file(spec)
        except VocabularyError as error:
            status = 1
            results.append({"file": str(file), "error": str(error)})
            if not args.json:
                sys.stderr.write(f"bytepair: {error}\n")
            continue
        results.append(_fields(found))
        if not args.json:
            sys.stdout.write("\n" * (len(results) > 1) + "\n".join(_lines(found)) + "\n")
    if args.json:
        sys.stdout.write(json.dumps(results) + "\n")
    sys.stdout.flush()
    return status


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair inspect",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a vocabulary file")
    parser.add_argument("--json", action="store_true", help="print JSON: a list, one item per file")
    parser.add_argument("--name", help="the name of the encoding (default: that of the file)")
    add_file_options(parser)
    parser.add_argument(
        "--also-special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a token that is not special in the file but must be allowed by a request; repeatable",
    )
    return parser


def _lines(found: Inspection) -> Iterator[str]:
    from bytepair_engine.formats.detect import FORMATS

    def line(label: str, text: object) -> str:
        return f"{label + ':' if label else '':15} {text}"

    encoding = found.encoding
    yield line("file", found.file)
    yield line("format", f"{found.format}: {FORMATS[found.format]}")
    if found.official:
        yield line("official", f"the table of the built-in {', '.join(found.official)}")
    if encoding is None:
        yield line("missing", found.missing)
    else:
        yield line("fingerprint", encoding.fingerprint)
        yield line("n_vocab", encoding.n_vocab)
        yield line("special tokens", _listed(list(encoding.special_tokens)))
        if found.always_found:
            yield line("always found", _listed(list(found.always_found)))
        for number, step in enumerate(found.steps):
            yield line("" if number else "text", step)
        yield line("runs on", f"the {encoding.backend} backend, splitter {encoding.splitter}")
        yield line("streams", f"ids to text; text to ids: {'yes' if found.can_stream else 'no'}")
    yield ""
    for note in _notes(found):
        yield f"# {note}"
    yield from _declaration(found)


def _notes(found: Inspection) -> Iterator[str]:
    if found.official:
        yield f'This table is built in: extends = "{found.official[0]}" needs no file.'
    if found.encoding is None:
        yield f"Not yet complete: {found.missing}."
    suspects = [token for token in found.always_found if re.match(r"[<\[{|].*[>\]}|]$", token)]
    if suspects:
        yield "These tokens are recognised in every text, as in the publisher's library. Add those"
        yield "that control the model to also_special:"
        yield f"{_listed(suspects)}"


def _declaration(found: Inspection) -> Iterator[str]:
    spec, encoding = found.spec, found.encoding
    return declaration(
        spec.name,
        {
            "file": spec.file,
            "format": found.format,
            "encoder_file": spec.encoder_file,
            "pattern": spec.pattern or found.known_pattern,
            "also_special": spec.also_special,
            "sha256": found.sha256,
            "fingerprint": "" if encoding is None else encoding.fingerprint,
        },
    )


def _fields(found: Inspection) -> dict[str, Any]:
    encoding = found.encoding
    fields: dict[str, Any] = {
        "file": str(found.file),
        "format": found.format,
        "sha256": found.sha256,
        "official": list(found.official),
        "missing": found.missing,
        "configuration": "\n".join(_declaration(found)) + "\n",
    }
    if encoding is not None:
        fields |= {
            "fingerprint": encoding.fingerprint,
            "n_vocab": encoding.n_vocab,
            "max_token_id": encoding.max_token_id,
            "pattern": encoding.pattern,
            "special_tokens": dict(encoding.special_tokens),
            "always_found": list(found.always_found),
            "steps": list(found.steps),
            "backend": encoding.backend,
            "splitter": encoding.splitter,
            "can_stream_text": found.can_stream,
        }
    return fields


def _listed(tokens: list[str]) -> str:
    if not tokens:
        return "none"
    shown = ", ".join(map(repr, tokens[:MAX_LISTED]))
    more = len(tokens) - MAX_LISTED
    return f"{len(tokens)}: {shown}" + (f" and {more} more" if more > 0 else "")
