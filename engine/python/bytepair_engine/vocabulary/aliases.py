"""Which model names stand for which built-in encoding.

Names are exact: a model that is not here is unknown, never guessed from its prefix. The
table follows tiktoken's model.py, where prefixes of dated releases stand for the releases
that OpenAI has published.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "r50k_base": (
        "gpt2",
        "gpt-2",
        "davinci",
        "curie",
        "babbage",
        "ada",
        "text-davinci-001",
        "text-curie-001",
        "text-babbage-001",
        "text-ada-001",
        "text-similarity-davinci-001",
        "text-similarity-curie-001",
        "text-similarity-babbage-001",
        "text-similarity-ada-001",
        "text-search-davinci-doc-001",
        "text-search-curie-doc-001",
        "text-search-babbage-doc-001",
        "text-search-ada-doc-001",
        "code-search-babbage-code-001",
        "code-search-ada-code-001",
    ),
    "p50k_base": (
        "text-davinci-002",
        "text-davinci-003",
        "code-davinci-001",
        "code-davinci-002",
        "code-cushman-001",
        "code-cushman-002",
        "davinci-codex",
        "cushman-codex",
    ),
    "p50k_edit": (
        "text-davinci-edit-001",
        "code-davinci-edit-001",
    ),
    "cl100k_base": (
        "gpt-4",
        "gpt-4-0314",
        "gpt-4-0613",
        "gpt-4-32k",
        "gpt-4-32k-0314",
        "gpt-4-32k-0613",
        "gpt-4-1106-preview",
        "gpt-4-0125-preview",
        "gpt-4-turbo",
        "gpt-4-turbo-preview",
        "gpt-4-turbo-2024-04-09",
        "gpt-3.5",
        "gpt-3.5-turbo",
        "gpt-3.5-turbo-0301",
        "gpt-3.5-turbo-0613",
        "gpt-3.5-turbo-1106",
        "gpt-3.5-turbo-0125",
        "gpt-3.5-turbo-16k",
        "gpt-3.5-turbo-16k-0613",
        "gpt-3.5-turbo-instruct",
        "gpt-35-turbo",
        "davinci-002",
        "babbage-002",
        "text-embedding-ada-002",
        "text-embedding-3-small",
        "text-embedding-3-large",
    ),
    "o200k_base": (
        "gpt-4o",
        "gpt-4o-2024-05-13",
        "gpt-4o-2024-08-06",
        "gpt-4o-2024-11-20",
        "gpt-4o-mini",
        "gpt-4o-mini-2024-07-18",
        "chatgpt-4o-latest",
        "gpt-4.1",
        "gpt-4.1-2025-04-14",
        "gpt-4.1-mini",
        "gpt-4.1-nano",
        "gpt-4.5-preview",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5-nano",
        "o1",
        "o1-mini",
        "o1-preview",
        "o3",
        "o3-mini",
        "o4-mini",
    ),
    "o200k_harmony": (
        "gpt-oss-20b",
        "gpt-oss-120b",
    ),
}

#: Alias to the canonical name of a built-in encoding.
ALIASES: Final[dict[str, str]] = {
    alias: encoding for encoding, names in _NAMES.items() for alias in names
}
