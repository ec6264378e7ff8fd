"""Split patterns with a name.

A rank file does not contain its pattern, so the declaration must give a name or a regular
expression; nothing is guessed. A pattern with several lines is a sequence of splits, each applied
to the pieces of the previous one. The native core runs the patterns below by hand-written
scanners, and any other by its regex engine, in bounded time; docs/patterns.md has the syntax.
"""

from __future__ import annotations

import re
from typing import Final

import regex

from bytepair_engine.errors import VocabularyError, has_surrogate

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

# Llama-3's tokenizer.json; Qwen 2, 2.5 and 3 differ in splitting every digit. Qwen's tokenizer
# normalises text to NFC first, and a rank file with this pattern does not: the ids are the same
# only for text in NFC.
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

# Kimi K2's tokenization_kimi.py. It excludes Han by an intersection of two sets, which the syntax
# here lacks; a negative lookahead for Han before the character is equivalent.
_NO_HAN: Final = (
    r"(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])",
    r"(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])",
)
_KIMI_K2: Final = "|".join(
    [
        r"""[\p{Han}]+""",
        rf"""[^\r\n\p{{L}}\p{{N}}]?{_NO_HAN[0]}*{_NO_HAN[1]}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        rf"""[^\r\n\p{{L}}\p{{N}}]?{_NO_HAN[0]}+{_NO_HAN[1]}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)

#: Name to pattern, for patterns with a scanner and known split points. Each pattern occurs once.
PATTERNS: Final[dict[str, str]] = {
    "gpt2": _GPT2,
    "cl100k_base": _CL100K,
    "o200k_base": _O200K,
    "llama3": _LLAMA3,
    "qwen2": _QWEN2,
    "tekken": _TEKKEN,
    "deepseek_v3": _DEEPSEEK_V3,
}

#: Equivalent spellings of patterns with constructs that Oniguruma, the regex engine of Hugging Face's
#: tokenizers, interprets differently.
ONIGURUMA_SPELLINGS: Final = {
    PATTERNS["gpt2"]: r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    PATTERNS["cl100k_base"]: (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}

#: Name to pattern, for patterns that run on the regex engine: text cannot be streamed into them.
GENERAL_PATTERNS: Final[dict[str, str]] = {"kimi_k2": _KIMI_K2}

#: The patterns whose matches cover every text completely.
COVERING: Final = frozenset(PATTERNS.values()) - {PATTERNS["deepseek_v3"]}

#: Further names for the pattern of another encoding. Llama-4's, in its tokenizer.py, is identical
#: to o200k_base's.
_SPLIT_AS: Final = {
    "llama4": "o200k_base",
    "r50k_base": "gpt2",
    "p50k_base": "gpt2",
    "p50k_edit": "gpt2",
    "o200k_harmony": "o200k_base",
}
_NAMED: Final = PATTERNS | GENERAL_PATTERNS
#: The names that `resolve_pattern` knows, for error messages.
PATTERN_NAMES: Final = ", ".join([*_NAMED, *_SPLIT_AS])

# A mistyped name: as a regular expression it would match only itself, and all ids would be wrong.
_MEANT_AS_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")


def resolve_pattern(pattern: str, source: str) -> str:
    """Resolve the name of a pattern to its regular expression, and check regular expressions.

    Args:
        pattern: A key of `PATTERNS` or `GENERAL_PATTERNS`, the name of a built-in encoding, or
            regular expressions in the syntax of the `regex` package, one per line.
        source: The source that errors name.
    Returns:
        The regular expressions, one per line.
    Raises:
        VocabularyError: The pattern is empty, does not compile, holds a lone surrogate, or looks
            like an unknown name.
    """
    name = _SPLIT_AS.get(pattern, pattern)
    if name in _NAMED:
        return _NAMED[name]
    if _MEANT_AS_NAME.fullmatch(pattern):
        raise VocabularyError(
            source,
            f"no split pattern has the name {pattern!r}",
            f"use one of the names {PATTERN_NAMES}, or a regular expression",
        )
    if has_surrogate(pattern):
        raise VocabularyError(source, "the split pattern holds a lone surrogate", "remove it")
    for line in pattern.split("\n"):
        if not line:
            raise VocabularyError(
                source,
                "the split pattern is empty or has an empty line",
                f"use a regular expression, or one of the names {PATTERN_NAMES}",
            )
        try:
            regex.compile(line)
        except Exception as error:  # not only `regex.error`: AttributeError on (?i)\p{L}|\P{L}
            raise VocabularyError(
                source,
                f"the split pattern {line!r} does not compile: {error}",
                f"correct the regular expression, or use one of the names {PATTERN_NAMES}",
            ) from None
    return pattern
