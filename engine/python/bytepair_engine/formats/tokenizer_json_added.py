"""Read the added tokens of a tokenizer.json."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.replacement_budget import ReplacementBudget
from bytepair_engine.pipeline.definition import AddedToken, Normaliser, Replace
from bytepair_engine.pipeline.normalising import normalise_text
from bytepair_engine.pipeline.splitting import compiled


def read_added_tokens(
    node: Node | None,
    vocabulary: Mapping[str, int],
    normalisers: Sequence[Normaliser],
    also_special: Collection[str],
) -> tuple[AddedToken, ...]:
    """Read the member `added_tokens`.

    Args:
        node: The member; None if it is missing.
        vocabulary: The vocabulary of the model.
        normalisers: The normalisers, applied to tokens that are searched in normalised text.
        also_special: Tokens to treat as special although they are not special in the file; they may
            be only in the vocabulary.
    Raises:
        VocabularyError: A token is empty, a duplicate, or has another id than `tokenizers` gives
            it; or a token of `also_special` is missing.
    """
    tokens: dict[str, AddedToken] = {}
    found: dict[tuple[bool, str], str] = {}
    next_id = len(vocabulary)
    budget = ReplacementBudget()
    for member in [] if node is None else node.items():
        name = member["content"].a(str)
        if not name:
            member["content"].reject("an added token is empty, so it would match everywhere")
        flags = {
            key: member[key].a(bool)
            for key in ("special", "lstrip", "rstrip", "single_word", "normalized")
        }
        special = flags["special"] or name in also_special
        if name.isspace() and special:
            member["content"].reject(
                "a special token is only white space, which is part of most texts"
            )
        content = name
        for step in normalisers if flags["normalized"] else ():
            if isinstance(step, Replace):
                pattern = compiled(step.pattern)
                content = budget.replaced(member["content"], pattern, content, step.content)
            else:
                content = normalise_text(content, [step])
        if not content:
            member["content"].reject("nothing is left of the token once it is normalised")
        # The id that `tokenizers` assigns, whatever the file says.
        token_id = vocabulary.get(name)
        if name in tokens:
            token_id = tokens[name].id
        elif token_id is None:
            token_id, next_id = next_id, next_id + 1
        if member["id"].a(int) != token_id:
            member["id"].reject(
                f"the id of {name!r} is {member['id'].value}, but `tokenizers` assigns {token_id}: "
                "the ids have a gap, or a token was removed"
            )
        token = AddedToken(
            content=content,
            id=token_id,
            special=special,
            name=name,
            left_strip=flags["lstrip"],
            right_strip=flags["rstrip"],
            single_word=flags["single_word"],
            normalised=flags["normalized"],
        )
        if name in tokens and tokens[name] != token:
            member.reject(f"{name!r} is added a second time, with other settings")
        other = found.setdefault((token.normalised, content), name)
        if other != name:
            member.reject(f"{name!r} and {other!r} are the same once they are normalised")
        tokens[name] = token
    for name in also_special:
        if name not in tokens:
            tokens[name] = _of_vocabulary(name, vocabulary.get(name), node or _missing())
    return tuple(tokens.values())


def _of_vocabulary(name: str, token_id: int | None, node: Node) -> AddedToken:
    """Return a special token that the file has only in the vocabulary, as files that are converted
    have it: `transformers` adds it by tokenizer_config.json."""
    if token_id is None:
        node.reject(f"{name!r}, which is in also_special, is missing")
    if not name.strip():
        node.reject(f"{name!r}, which is in also_special, is part of most texts")
    return AddedToken(
        content=name,
        id=token_id,
        special=True,
        name=name,
        left_strip=False,
        right_strip=False,
        single_word=False,
        normalised=False,
    )


def _missing() -> Node:
    return Node(None, "added_tokens", "tokenizer.json", "correct also_special")
