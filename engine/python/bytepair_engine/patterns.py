"""Split patterns that have a name.

A rank file does not carry its pattern; the name or the regular expression that goes with
it decides how text is split, and nothing is guessed. A pattern of several lines is several
splits, each applied to the pieces of the one before it. docs/patterns.md states the syntax that
the native core runs: the patterns below by scanners written for them, any other by its general
engine, in bounded time.
"""

from __future__ import annotations

from typing import Final

import regex

from bytepair_engine.errors import VocabularyError

# OpenAI's, as tiktoken_ext/openai_public.py spells them.
_GPT2: Final = (
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
)
_CL100K: Final = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
_O200K: Final = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)

# Llama-3's tokenizer.json; Qwen 2, 2.5 and 3 differ in splitting every digit.
_LLAMA3: Final = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
_QWEN2: Final = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

# Mistral's Tekken files, field config.pattern.
_TEKKEN: Final = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*""",
        r"""\p{N}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)

# DeepSeek-V3's tokenizer.json: three splits in sequence.
_DEEPSEEK_V3: Final = "\n".join(
    [
        r"""\p{N}{1,3}""",
        r"""[一-龥぀-ゟ゠-ヿ]+""",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    ]
)

#: Name to pattern. r50k_base and p50k_base split as gpt2 does, o200k_harmony as o200k_base.
PATTERNS: Final[dict[str, str]] = {
    "gpt2": _GPT2,
    "cl100k_base": _CL100K,
    "o200k_base": _O200K,
    "llama3": _LLAMA3,
    "qwen2": _QWEN2,
    "tekken": _TEKKEN,
    "deepseek_v3": _DEEPSEEK_V3,
}


def resolve_pattern(pattern: str, source: str) -> str:
    """Turn a pattern's name, or a regular expression, into a regular expression.

    Args:
        pattern: A key of `PATTERNS`, or a regular expression in the syntax of the `regex`
            package, one for each line.
        source: What to blame in an error.
    Returns:
        The regular expression.
    Raises:
        VocabularyError: It is empty or does not compile.
    """
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    for line in pattern.split("\n"):
        if not line:
            raise VocabularyError(
                source,
                "the split pattern is empty or has an empty line",
                f"give a regular expression, or one of the names {', '.join(PATTERNS)}",
            )
        try:
            regex.compile(line)
        except Exception as error:  # `regex` raises others too: AttributeError on (?i)\p{L}|\P{L}
            raise VocabularyError(
                source,
                f"the split pattern {line!r} does not compile: {error}",
                "correct the regular expression, or use one of the names " + ", ".join(PATTERNS),
            ) from None
    return pattern
