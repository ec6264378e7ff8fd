"""Compare ids and text with `tokenizers`, for published tokenizer.json files.

    make exactness-formats              all of them, on all corpora
    python -m bench.formats.tokenizer_json NAME…     some of them

Four kinds of text, each with all special tokens allowed and with none: the corpora, in documents
of 2,000 characters; every code point by itself, between letters and after a space; random strings
glued from each vocabulary's own tokens and from hard characters; and each added token with every
white space around it. Prints a line for each vocabulary, and ends with status 1 if any id or any
decoded text differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from bytepair_engine import Encoding, EncodingSpec, load_encoding
from support.hard_text import every_white_space
from tokenizers import Tokenizer

from bench.formats.comparison import compare, parsed
from bench.formats.vocabularies import TOKENIZER_JSON, fetched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="vocabularies; by default all")
    options = parsed(parser)
    different = 0
    print(
        "vocabulary      backend    documents code points    random  added  differences", flush=True
    )
    for name in options.names or TOKENIZER_JSON:
        file = fetched(name, TOKENIZER_JSON[name], ".json")
        encoding = load_encoding(EncodingSpec(name=name, file=file))
        oracle = Tokenizer.from_file(str(file))
        oracle.no_truncation()
        oracle.no_padding()
        different += compare(name, encoding, oracle, differs, options, around_added(oracle))
    return 1 if different else 0


def differs(encoding: Encoding, oracle: Tokenizer, text: str) -> bool:
    for allowed in (True, False):
        oracle.encode_special_tokens = not allowed
        expected = oracle.encode(text, add_special_tokens=False).ids
        ids = encoding.encode(text, allowed_special="all" if allowed else (), disallowed_special=())
        if ids != expected:
            print(f"    ids differ, special {allowed}: {text!r:.200}")
            return True
    back = oracle.decode(expected, skip_special_tokens=False)
    if "\ufffd" not in back and encoding.decode(expected) != back:
        print(f"    text differs: {text!r:.200}")
        return True
    return False


def around_added(oracle: Tokenizer) -> Iterator[str]:
    spaces = ["", "a", *every_white_space()]
    added = [token.content for token in oracle.get_added_tokens_decoder().values()]
    for token in added[:150]:
        for space in spaces:
            yield f"{space}{token}{space}{token} x{space} {token}"


if __name__ == "__main__":
    sys.exit(main())
