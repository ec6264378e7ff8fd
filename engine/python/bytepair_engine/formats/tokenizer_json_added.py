"""The added tokens of a tokenizer.json."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.regex_budget import RegexBudget
from bytepair_engine.pipeline.definition import AddedToken, Normaliser, Replace
from bytepair_engine.pipeline.normalising import normalise_text
from bytepair_engine.pipeline.splitting import compiled


def read_added_tokens(
    node: Node | None,
    vocabulary: Mapping[str, int],
    normalisers: Sequence[Normaliser],
    also_special: Collection[str],
) -> tuple[AddedToken, ...]:
    """The member `added_tokens`.

    Args:
        node: The member; None where there is none.
        vocabulary: The model's.
        normalisers: What is done to the contents of tokens that are found in normalised text.
        also_special: Tokens that are special although the file does not say so.
    Raises:
        VocabularyError: A token is empty, is another one as well, or has not the id that it
            gets when `tokenizers` reads the file; or one of `also_special` is not there.
    """
    tokens: dict[str, AddedToken] = {}
    found: dict[tuple[bool, str], str] = {}
    next_id = len(vocabulary)
    budget = RegexBudget()
    for member in [] if node is None else node.items():
        name = member["content"].a(str)
        if not name:
            member["content"].refuse("an added token is empty, and every text would hold it")
        if not name.isprintable() and any("\ud800" <= c <= "\udfff" for c in name):
            member["content"].refuse("it holds a lone surrogate, which no text has")
        flags = {
            key: member[key].a(bool)
            for key in ("special", "lstrip", "rstrip", "single_word", "normalized")
        }
        special = flags["special"] or name in also_special
        if name.isspace() and special:
            member["content"].refuse(
                "a special token is only white space, which texts hold everywhere"
            )
        content = name
        for step in normalisers if flags["normalized"] else ():
            if isinstance(step, Replace):
                pattern = compiled(step.pattern)
                content = budget.replaced(member["content"], pattern, content, step.content)
            else:
                content = normalise_text(content, [step])
        if not content:
            member["content"].refuse("nothing is left of the token once it is normalised")
        # As `tokenizers` gives ids, whatever the file says.
        token_id = vocabulary.get(name)
        if name in tokens:
            token_id = tokens[name].id
        elif token_id is None:
            token_id, next_id = next_id, next_id + 1
        if member["id"].a(int) != token_id:
            member["id"].refuse(
                f"the id of {name!r} is {member['id'].value}, and {token_id} is what it gets by "
                "its place: the ids have a hole, or a token was removed"
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
            member.refuse(f"{name!r} is added a second time, with other settings")
        other = found.setdefault((token.normalised, content), name)
        if other != name:
            member.refuse(f"{name!r} and {other!r} are the same once they are normalised")
        tokens[name] = token
    for name in also_special:
        if name not in tokens:
            (node or _missing()).refuse(f"also_special names {name!r}, which is not among them")
    return tuple(tokens.values())


def _missing() -> Node:
    return Node(None, "added_tokens", "tokenizer.json", "correct also_special")
