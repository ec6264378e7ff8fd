"""Compare ids and text with the `sentencepiece` package, for published models.

    make exactness-formats                  all of them, on all corpora
    python -m bench.formats.sentencepiece_models NAME…     some of them

Texts as in tokenizer_json.py: the corpora, in documents of 2,000 characters; code points, by
themselves and in surroundings; random strings; and each control and user-defined symbol with every
white space around it. Prints a line for each model, and ends with status 1 if any id or any text
differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from bytepair_engine import Encoding, EncodingSpec, load_encoding
from sentencepiece import SentencePieceProcessor
from support.hard_text import every_white_space

from bench.formats.comparison import compare, parsed
from bench.formats.vocabularies import SENTENCEPIECE, fetched

#: Most models have hundreds of control symbols that differ in a number alone.
SYMBOLS = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="models; by default all")
    options = parsed(parser)
    different = 0
    print("model           backend      documents code points    random symbols  differences")
    for name in options.names or SENTENCEPIECE:
        file = fetched(name, SENTENCEPIECE[name], ".model")
        encoding = load_encoding(EncodingSpec(name=name, file=file))
        oracle: Any = SentencePieceProcessor(model_file=str(file))
        different += compare(name, encoding, oracle, differs, options, around_symbols(oracle))
    return 1 if different else 0


def differs(encoding: Encoding, oracle: Any, text: str) -> bool:
    expected = oracle.encode(text)
    if encoding.encode_ordinary(text) != expected:
        print(f"    ids differ: {text!r:.200}")
        return True
    if encoding.decode(expected) != oracle.decode(expected):
        print(f"    text differs: {text!r:.200}")
        return True
    return False


def around_symbols(oracle: Any) -> Iterator[str]:
    size = oracle.get_piece_size()
    symbols = [i for i in range(size) if oracle.is_control(i) or oracle.get_score(i) == 0.0]
    for symbol in map(oracle.id_to_piece, symbols[:SYMBOLS]):
        for space in ["", "a", "▁", *every_white_space()]:
            yield f"{space}{symbol}{space}{symbol} x{space} {symbol}"


if __name__ == "__main__":
    sys.exit(main())
