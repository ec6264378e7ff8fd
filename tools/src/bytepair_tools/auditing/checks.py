"""The checks of a vocabulary, on its tokens and on texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bytepair_engine import Encoding
from bytepair_engine.pipeline.definition import Scores

from bytepair_tools.auditing.vocabulary import Token, Vocabulary, can_be_in_text
from bytepair_tools.evaluation.measures import ratio
from bytepair_tools.evaluation.token_starts import id_stream
from bytepair_tools.texts.documents import Documents


@dataclass(frozen=True, slots=True)
class Finding:
    """A token with a problem.

    Attributes:
        id: The id.
        token: The decoded bytes; the spelling of a special token.
        note: Details; "" for none.
    """

    id: int
    token: bytes
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check.

    Attributes:
        name: The name in JSON and in the options of limits.
        title: A short description.
        findings: The tokens with the problem; None if the check did not run.
        total: Number of tokens checked.
        why_not: The reason why the check did not run; "" if it ran.
    """

    name: str
    title: str
    findings: Sequence[Finding] | None
    total: int
    why_not: str = ""

    @property
    def share(self) -> float | None:
        """The share of tokens with the problem; None if the check did not run, or had no tokens."""
        return None if self.findings is None else ratio(len(self.findings), self.total)


#: The checks with descriptions of their findings, in the order of the report.
TITLES: Final = {
    "unused": "never produced on the texts",
    "unreachable": "no text becomes them, because merging does not make them",
    "only-whole": "merging does not make them: only a whole pre-token becomes them",
    "split": "cut by the split pattern, alone and beside any one character",
    "incomplete": "not complete UTF-8",
    "duplicates": "the same as an earlier token except for case and one leading space",
    "spelled": "special tokens in the texts",
    "always-found": "added tokens that are found in any text",
    "ambiguous": "special tokens with the text of an ordinary token",
}

#: Contexts that are put next to a token's text, to test whether the pattern always splits it.
_CONTEXTS: Final = (*map(chr, range(0x20, 0x7F)), "\n", "\r\n", "\t", "é", "中", "re", "ve", "ll")

NO_TEXTS: Final = "no texts were given: --on"


class Texts:
    """Counts of the tokens of texts.

    Special tokens in a text are allowed, and counted as themselves.

    Attributes:
        produced: Id to count.
        bytes: Number of bytes of text read.
    """

    def __init__(self) -> None:
        self.produced: Counter[int] = Counter()
        self.bytes = 0

    def read(
        self,
        encoding: Encoding,
        files: Sequence[str],
        documents: Documents,
        report: Callable[[int], None],
    ) -> None:
        """Read and encode files.

        Args:
            encoding: The encoding.
            files: File names, or STANDARD_INPUT.
            documents: The reader of the files.
            report: Called repeatedly with the number of bytes of text read so far.
        Raises:
            Failure: A file cannot be read, or is invalid.
        """
        for file in files:
            for document in documents.read(file):
                stream = id_stream(encoding, allowed_special="all")
                for piece in document:
                    self.produced.update(stream.feed(piece))
                    self.bytes += len(piece.encode())
                    report(self.bytes)
                self.produced.update(stream.finish())


def audit(
    vocabulary: Vocabulary, texts: Texts | None, report: Callable[[int], None]
) -> list[Check]:
    """Run all checks on a vocabulary.

    Args:
        vocabulary: The vocabulary.
        texts: The counts of its tokens on texts; None for no texts.
        report: Called repeatedly with the number of tokens checked so far.
    Returns:
        The results of all checks in TITLES, in order.
    """
    tokens = vocabulary.tokens
    special = len(vocabulary.encoding.special_tokens)
    found = _by_derivation(vocabulary, texts, report)
    found["incomplete"] = [Finding(t.id, t.data) for t in tokens if t.text is None]
    found["duplicates"] = list(_duplicates(tokens))
    found["always-found"] = [
        Finding(token_id, name.encode()) for token_id, name in vocabulary.always_found.items()
    ]
    found["ambiguous"] = list(_ambiguous(vocabulary))
    if texts is not None:
        found["unused"] = [Finding(t.id, t.data) for t in tokens if not texts.produced[t.id]]
        found["spelled"] = list(_in_texts(vocabulary.encoding, texts))
    reasons = {"unused": NO_TEXTS, "spelled": NO_TEXTS, "split": "the encoding changes text first"}
    return [
        Check(
            name,
            title,
            found.get(name),
            special if name in ("spelled", "ambiguous") else len(tokens),
            "" if name in found else reasons[name],
        )
        for name, title in TITLES.items()
    ]


def _by_derivation(
    vocabulary: Vocabulary, texts: Texts | None, report: Callable[[int], None]
) -> dict[str, list[Finding]]:
    """Run the checks that depend on derivations: unreachable, only-whole, split."""
    encoding, derivations = vocabulary.encoding, vocabulary.derivations
    rule, whole_first = derivations.model.rule, derivations.model.whole_first
    apart = rule.taken_apart if isinstance(rule, Scores) else {}
    is_plain = encoding.pipeline is None
    found: dict[str, list[Finding]] = {"unreachable": [], "only-whole": []}
    if is_plain:
        found["split"] = []
    for number, token in enumerate(vocabulary.tokens):
        report(number)
        seen = texts is not None and texts.produced[token.id] > 0
        if token.id in vocabulary.always_found:
            continue
        if token.spelling is None:
            found["unreachable"].append(Finding(token.id, token.data, "no text is spelled so"))
        elif not can_be_in_text(token.data):
            found["unreachable"].append(Finding(token.id, token.data, "its bytes are in no UTF-8"))
        elif token.id in apart:
            found["unreachable"].append(Finding(token.id, token.data, "it is taken apart again"))
        else:
            is_produced = derivations.makes(token.spelling)
            if is_produced and is_plain and not seen and _is_cut(encoding, token):
                found["split"].append(Finding(token.id, token.data))
            elif not is_produced:
                whole = whole_first and (
                    seen or not is_plain or _becomes(encoding, token.text, token.id)
                )
                note = f"merging stops at {len(derivations.of(token.spelling))} parts"
                name = "only-whole" if whole else "unreachable"
                found[name].append(Finding(token.id, token.data, note))
    return found


def _becomes(encoding: Encoding, text: str | None, token_id: int) -> bool:
    """Whether a text becomes exactly this token."""
    return text is not None and encoding.encode_ordinary(text) == [token_id]


def _is_cut(encoding: Encoding, token: Token) -> bool:
    """Whether the pattern splits the token's text, alone and in every context."""
    text = token.text
    if text is None or _becomes(encoding, text, token.id):
        return False
    return not any(
        token.id in encoding.encode_ordinary(extended)
        for context in _CONTEXTS
        for extended in (context + text, text + context)
    )


def _duplicates(tokens: Sequence[Token]) -> Iterator[Finding]:
    """Yield all tokens of each group except the first, with a reference to the first."""
    groups: defaultdict[str, list[Token]] = defaultdict(list)
    for token in tokens:
        if token.text is not None:
            groups[token.text.removeprefix(" ").casefold()].append(token)
    for first, *others in groups.values():
        for token in others:
            yield Finding(token.id, token.data, f"as {first.id}")


def _in_texts(encoding: Encoding, texts: Texts) -> Iterator[Finding]:
    for name, token_id in encoding.special_tokens.items():
        if times := texts.produced[token_id]:
            yield Finding(token_id, name.encode(), f"{times:,} times")


def _ambiguous(vocabulary: Vocabulary) -> Iterator[Finding]:
    ordinary = {token.data: token.id for token in vocabulary.tokens}
    for name, token_id in vocabulary.encoding.special_tokens.items():
        if (other := ordinary.get(name.encode())) is not None:
            yield Finding(token_id, name.encode(), f"as the ordinary token {other}")
