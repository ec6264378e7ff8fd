"""Mistral's Tekken files: a rank table, its split pattern and its special tokens in one JSON.

Read as `mistral_common.tokens.tokenizers.tekken` reads them, where that is the publisher's own
reader: `default_vocab_size` says how many ids there are, special tokens included, and the table
is cut to that; the special tokens have the first ids, and the id of an ordinary token is its rank
plus their number. Special tokens that the file does not name are called `<SPECIAL_n>`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final, NoReturn

from bytepair_engine.formats.json_file import Node
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID

#: What to do about any fault in such a file.
REMEDY: Final = "check that this is one of Mistral's tekken.json files, and that it is whole"

#: What the first special tokens are called where a file does not say it, as those up to v7 do.
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
    """What a Tekken file holds.

    Attributes:
        items: Every ordinary token and its id.
        pattern: The split pattern.
        special_tokens: Spelling to id, fillers included.
        version: Of Mistral's tokenizers, such as "v3"; it decides no id.
    """

    items: list[tuple[bytes, int]]
    pattern: str
    special_tokens: dict[str, int]
    version: str


def parse_tekken(root: Node) -> Tekken:
    """Read a Tekken file.

    Args:
        root: The file.
    Raises:
        VocabularyError: A member is missing, of the wrong type or out of range, or the ranks are
            not the positions of their tokens.
    """
    config = root["config"]
    version = config["version"].a(str)
    size = _number(config["default_vocab_size"])
    specials = _number(config["default_num_special_tokens"])
    in_file = len(root["vocab"].a(list))
    ordinary = size - specials
    if not 256 <= ordinary <= in_file:
        config["default_vocab_size"].refuse(
            f"{size} ids, {specials} of them special, leave {ordinary} for ordinary tokens: they "
            f"must be at least 256, and no more than the {in_file} that the file has"
        )
    return Tekken(
        items=_items(root["vocab"], ordinary, specials),
        pattern=config["pattern"].a(str),
        special_tokens=_special_tokens(root, specials, version),
        version=version,
    )


def _number(node: Node) -> int:
    number = node.a(int)
    if not 0 <= number <= MAX_TOKEN_ID:
        node.refuse(f"it must be within 0 and {MAX_TOKEN_ID}")
    return number


def _items(vocab: Node, ordinary: int, shift: int) -> list[tuple[bytes, int]]:
    """The first `ordinary` tokens, each with the id that is its rank and `shift`."""
    items = []
    for rank, entry in enumerate(vocab.a(list)[:ordinary]):
        try:
            token = base64.b64decode(entry["token_bytes"], validate=True)
            if type(entry["rank"]) is not int or entry["rank"] != rank:
                raise ValueError
        except (TypeError, KeyError, ValueError):
            _refuse_token(vocab.items()[rank], rank)
        if rank < 256 and token != bytes([rank]):
            vocab.items()[rank].refuse(f"the token of rank {rank} must be the byte 0x{rank:02x}")
        items.append((token, rank + shift))
    return items


def _refuse_token(node: Node, rank: int) -> NoReturn:
    """Say what is wrong with a token: slow, so that what is right is read fast."""
    if node["rank"].a(int) != rank:
        node["rank"].refuse(f"it must be {rank}, the position of the token")
    node["token_bytes"].a(str)
    node["token_bytes"].refuse("it is not base64")


def _special_tokens(root: Node, number: int, version: str) -> dict[str, int]:
    listed = root.get("special_tokens")
    if listed is not None:
        names = []
        for position, node in enumerate(listed.items()):
            if node["rank"].a(int) != position:
                node["rank"].refuse(f"it must be {position}, the position of the token")
            names.append(node["token_str"].a(str))
    elif version in _VERSIONS_WITHOUT_NAMES:
        names = list(UNNAMED)
    else:
        root.refuse(f"it has no 'special_tokens', which files of version {version} must have")
    if len(names) > number:
        root["config"]["default_num_special_tokens"].refuse(
            f"it is {number}, and {len(names)} special tokens have a name"
        )
    names += [f"<SPECIAL_{position}>" for position in range(len(names), number)]
    ids = {name: position for position, name in enumerate(names)}
    if len(ids) != number or "" in ids:
        (listed or root).refuse("a special token is empty, or two have one name")
    return ids
