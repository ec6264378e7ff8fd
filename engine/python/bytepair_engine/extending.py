"""Add special tokens to an encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from bytepair_engine.backends.cores import resolve
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding, check_encoding
from bytepair_engine.errors import InvalidOption, VocabularyError, check_type


def extend_encoding(
    encoding: Encoding, special_tokens: Mapping[str, int] | Sequence[str], *, name: str
) -> Encoding:
    """Add special tokens to an encoding.

    Args:
        encoding: An encoding with a rank table. It is not changed.
        special_tokens: Spelling to id; or a sequence of spellings, which get consecutive ids from
            `encoding.n_vocab` on.
        name: The name of the new encoding.
    Returns:
        A new encoding with the special tokens of `encoding` and these. Ordinary text has the same
        ids in both.
    Raises:
        InvalidOption: `special_tokens` is one string, or the encoding has no rank table.
        VocabularyError: A token is empty, already special or holds a lone surrogate, or its id is
            in use or out of range.

    >>> from bytepair_engine import get_encoding
    >>> chat = extend_encoding(get_encoding("cl100k_base"), ["<|user|>", "<|bot|>"], name="chat")
    >>> chat.special_tokens["<|bot|>"], chat.n_vocab
    (100278, 100279)
    """
    check_encoding(encoding)
    check_type("name", name, str, "str")
    if isinstance(special_tokens, str):
        raise InvalidOption("special_tokens", "must be a list of strings, not one string")
    check_type("special_tokens", special_tokens, Mapping | Sequence, "a mapping or a sequence")
    if not isinstance(special_tokens, Mapping):
        names = set[str]()
        for token in special_tokens:
            check_type("special_tokens: each name", token, str, "str")
            if token in names:
                raise InvalidOption("special_tokens", f"{token!r} is given twice")
            names.add(token)
        special_tokens = {t: encoding.n_vocab + n for n, t in enumerate(special_tokens)}
    backend = encoding._backend
    if encoding.pipeline is not None:
        raise InvalidOption(
            "encoding",
            f"{encoding.name!r} is not a rank table: add special tokens to its file instead",
        )
    used = {token_id: token for token, token_id in encoding.special_tokens.items()}
    for token, token_id in special_tokens.items():
        check_type("special_tokens: each id", token_id, int, "int")
        problem = None
        if token in encoding.special_tokens:
            problem = f"it has the id {encoding.special_tokens[token]} already"
        elif token_id in used:
            problem = f"its id {token_id} is that of the special token {used[token_id]!r}"
        elif backend.token_bytes(token_id) is not None:
            problem = f"its id {token_id} is that of an ordinary token"
        if problem:
            free = max(encoding.max_token_id, *used) + 1
            raise VocabularyError(
                f"special token {token!r}",
                problem,
                f"leave it out, or give it a free id: {free} or any larger one",
            )
        used[token_id] = token
    core = resolve(encoding.backend)
    return build_encoding(
        core,
        core.from_items(ordinary_tokens(encoding)),
        name=name,
        pattern=encoding.pattern,
        special_tokens={**encoding.special_tokens, **special_tokens},
        source=f"builtin:{encoding.name}" if encoding.source == "builtin" else encoding.source,
        table_source=encoding.name,
        resources=encoding.resources,
        template=encoding.template,
    )


def ordinary_tokens(encoding: Encoding) -> list[tuple[bytes, int]]:
    """Every ordinary token with its id, in order of ids."""
    tokens = encoding.token_byte_values()
    items = zip(tokens, map(encoding.encode_single_token, tokens), strict=True)
    return sorted(items, key=itemgetter(1))
