"""The fingerprint of an encoding: a hash of everything that determines ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from struct import pack

from bytepair_engine.pipeline.definition import Template


def fingerprint(
    ranks: Mapping[bytes, int],
    pattern: str,
    special_tokens: Mapping[str, int],
    *,
    merge_rule: str = "rank",
    normaliser: str = "none",
) -> str:
    """Hash the content of an encoding, without its name, file or format.

    The hashed data are unambiguous. Integers are little-endian; a field is its length in 8 bytes,
    followed by its bytes:

        "bytepair fingerprint 1\\n"
        field: merge rule    field: normaliser    field: split pattern
        the number of ordinary tokens in 8 bytes; for each, by id:
            its id in 4 bytes, its length in 4 bytes, its bytes
        the number of special tokens in 8 bytes; for each, by id and then by spelling:
            the same three, with its spelling in UTF-8 as bytes

    Args:
        ranks: Ordinary token to id.
        pattern: The split pattern as written: equivalent regular expressions differ.
        special_tokens: Spelling to id; several may share an id.
        merge_rule: The rule that converts a pre-token to tokens; "rank" is step 3 of `reference`.
        normaliser: The processing of text before it is split; "none" for none.
    Returns:
        "sha256:" and 64 hexadecimal digits.
    """
    digest = hashlib.sha256(b"bytepair fingerprint 1\n")
    for field in (merge_rule, normaliser, pattern):
        data = field.encode()
        digest.update(pack("<Q", len(data)) + data)
    ordinary = [(token_id, token) for token, token_id in ranks.items()]
    special = [(token_id, token.encode()) for token, token_id in special_tokens.items()]
    for tokens in (ordinary, special):
        digest.update(pack("<Q", len(tokens)))
        for token_id, token in sorted(tokens):
            digest.update(pack("<II", token_id, len(token)) + token)
    return f"sha256:{digest.hexdigest()}"


def with_template(plain: str, template: Template) -> str:
    """Include a template in a fingerprint, because `add_special_tokens` adds its ids.

    Args:
        plain: The fingerprint of the same content without a template.
        template: The template.
    Returns:
        `plain` if the template is empty. Otherwise the hash of "bytepair template 1\\n", `plain`,
        the ids before the text and those after it: each list as its length in 8 bytes, then each
        id in 4 bytes, little-endian.
    """
    if not template:
        return plain
    digest = hashlib.sha256(b"bytepair template 1\n" + plain.encode())
    for ids in (template.before, template.after):
        digest.update(pack(f"<Q{len(ids)}I", len(ids), *ids))
    return f"sha256:{digest.hexdigest()}"
