"""Compare ids with tiktoken's, for the rank files of other publishers and for Mistral's Tekken.

    make exactness-formats                  all of them, on all corpora
    python -m bench.formats.rank_files NAME…     some of them

The oracle of a rank file is tiktoken with the pattern of the publisher's own program, copied here
from that program. The oracle of a Tekken file is `mistral_common`, which reads the file itself.
Texts as in tokenizer_json.py. Prints a line for each table, and ends with status 1 if any id or any
text differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import tiktoken
from bytepair_engine import Encoding, EncodingSpec, load_encoding
from tiktoken.load import load_tiktoken_bpe

from bench.formats.comparison import compare, parsed
from bench.formats.vocabularies import RANK_FILES, TEKKEN, fetched

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

#: Table to the name of our pattern, and the publisher's pattern.
PATTERNS = {
    "llama3": ("llama3", _LLAMA3),  # llama_models/llama3/tokenizer.py
    "llama4": (  # llama_models/llama4/tokenizer.py
        "llama4",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    # dashscope/tokenizers/qwen_tokenizer.py. It normalises text to NFC first; a rank file does not.
    "qwen": ("qwen2", _LLAMA3.replace("{1,3}", "")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; by default all")
    options = parsed(parser)
    different = 0
    print("table           backend      documents code points    random  differences")
    for name in options.names or [*RANK_FILES, *TEKKEN]:
        encoding, encode = ranked(name) if name in RANK_FILES else from_tekken(name)
        different += compare(name, encoding, encode, differs, options)
    return 1 if different else 0


os.environ["TIKTOKEN_CACHE_DIR"] = ""  # or tiktoken would keep a copy of each file

Encode = Callable[[str], list[int]]


def ranked(name: str) -> tuple[Encoding, Encode]:
    file = fetched(name, RANK_FILES[name], ".tiktoken")
    ours, published = PATTERNS[name]
    oracle = tiktoken.Encoding(
        name,
        pat_str=published,
        mergeable_ranks=load_tiktoken_bpe(str(file)),
        special_tokens={},
    )
    return load_encoding(EncodingSpec(name=name, file=file, pattern=ours)), oracle.encode_ordinary


def from_tekken(name: str) -> tuple[Encoding, Encode]:
    reader: Any = import_module("mistral_common.tokens.tokenizers.tekken")
    file = fetched(name, TEKKEN[name], ".json")
    oracle = reader.Tekkenizer.from_file(file)
    encoding = load_encoding(EncodingSpec(name=name, file=file))
    for token, token_id in encoding.special_tokens.items():
        assert oracle.get_special_token(token) == token_id, token
    assert encoding.n_vocab == oracle.n_words
    return encoding, lambda text: oracle.encode(text, bos=False, eos=False)


def differs(encoding: Encoding, encode: Encode, text: str) -> bool:
    expected = encode(text)
    if encoding.encode_ordinary(text) != expected:
        print(f"    ids differ: {text!r:.200}")
        return True
    if encoding.decode(expected) != text:
        print(f"    text differs: {text!r:.200}")
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
