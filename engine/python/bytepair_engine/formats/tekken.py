"""Read Mistral's Tekken files: JSON with a rank table, a split pattern and special tokens.

The rules are those of the publisher's reader, `mistral_common.tokens.tokenizers.tekken`. The number
of ids, including special tokens, is `default_vocab_size`; further entries of the table are ignored.
Special tokens have the first ids. The id of an ordinary token is its rank plus their number. A
special token without a name in the file is called `<SPECIAL_n>`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final, NoReturn

from bytepair_engine.formats.json_file import Node
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID

#: The remedy of all errors in these files.
REMEDY: Final = "check that this is one of Mistral's tekken.json files, and that it is complete"

#: Maximum number of special tokens, which need not be listed. Published files have 1,000.
MAX_SPECIAL_TOKENS: Final = 2**16

#: The names of the first special tokens in files without names, up to v7.
UNNAMED: Final = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)
_VERSIONS_WITHOUT_NAMES: Final = ("v1", "v2", "v3", "v7")


@dataclass(frozen=True)
class Tekken:
    """The content of a Tekken file.

    Attributes:
        items: Every ordinary token and its id.
        pattern: The split pattern.
        special_tokens: Spelling to id, including unnamed ones.
        version: The version of Mistral's tokenizers, such as "v3", which does not affect ids.
    """

    items: list[tuple[bytes, int]]
    pattern: str
    special_tokens: dict[str, int]
    version: str


def parse_tekken(root: Node) -> Tekken:
    """Read a Tekken file.

    Args:
        root: The parsed file.
    Raises:
        VocabularyError: A member is missing, has the wrong type or is out of range; or a rank is
            not the index of its token, or two tokens are equal.
    """
    config = root["config"]
    version = config["version"].a(str)
    size = _number(config["default_vocab_size"], MAX_TOKEN_ID)
    specials = _number(config["default_num_special_tokens"], MAX_SPECIAL_TOKENS)
    in_file = len(root["vocab"].a(list))
    ordinary = size - specials
    if not 256 <= ordinary <= in_file:
        config["default_vocab_size"].reject(
            f"{size} ids minus {specials} special tokens leave {ordinary} ordinary tokens: this "
            f"must be at least 256, and at most the {in_file} of the file"
        )
    return Tekken(
        items=_items(root["vocab"], ordinary, specials),
        pattern=config["pattern"].a(str),
        special_tokens=_special_tokens(root, specials, version),
        version=version,
    )


def _number(node: Node, most: int) -> int:
    number = node.a(int)
    if not 0 <= number <= most:
        node.reject(f"it must be from 0 to {most}")
    return number


def _items(vocab: Node, ordinary: int, shift: int) -> list[tuple[bytes, int]]:
    """Return the first `ordinary` tokens, with their rank plus `shift` as id."""
    items: dict[bytes, int] = {}
    for rank, entry in enumerate(vocab.a(list)[:ordinary]):
        try:
            token = base64.b64decode(entry["token_bytes"], validate=True)
            if type(entry["rank"]) is not int or entry["rank"] != rank:
                raise ValueError
        except (TypeError, KeyError, ValueError):
            _reject_token(vocab.items()[rank], rank)
        if rank < 256 and token != bytes([rank]):
            vocab.items()[rank].reject(f"the token of rank {rank} must be the byte 0x{rank:02x}")
        if not token or items.setdefault(token, rank + shift) != rank + shift:
            vocab.items()[rank]["token_bytes"].reject("it is empty, or that of an earlier token")
    return [*items.items()]


def _reject_token(node: Node, rank: int) -> NoReturn:
    """Raise the error of an invalid token, apart from the fast loop over valid ones."""
    if node["rank"].a(int) != rank:
        node["rank"].reject(f"it must be {rank}, the position of the token")
    node["token_bytes"].a(str)
    node["token_bytes"].reject("it is not base64")


def _special_tokens(root: Node, number: int, version: str) -> dict[str, int]:
    listed = root.get("special_tokens")
    if listed is not None:
        names = []
        for position, node in enumerate(listed.items()):
            if node["rank"].a(int) != position:
                node["rank"].reject(f"it must be {position}, the position of the token")
            names.append(node["token_str"].a(str))
    elif version in _VERSIONS_WITHOUT_NAMES:
        names = list(UNNAMED)
    else:
        root.reject(f"it has no 'special_tokens', which files of version {version} must have")
    if len(names) > number:
        root["config"]["default_num_special_tokens"].reject(
            f"it is {number}, and {len(names)} special tokens have a name"
        )
    names += [f"<SPECIAL_{position}>" for position in range(len(names), number)]
    ids = {name: position for position, name in enumerate(names)}
    if len(ids) != number or "" in ids:
        (listed or root).reject("a special token is empty, or two have the same name")
    return ids
