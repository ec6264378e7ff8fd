"""The function `train`: texts or counts in, an encoding out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.backends.reference import check_unicode, split
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption
from bytepair_engine.resources import Resources
from bytepair_engine.training.merging import (
    Progress,
    Report,
    Trained,
    merge_by_reference,
    merge_counts,
)
from bytepair_engine.training.settings import WHOLE_TEXT, ByteOrder, Ties, TrainingSettings

Corpus = Iterable[str] | Mapping[str, int] | Mapping[bytes, int]


def train(
    corpus: Corpus,
    *,
    vocab_size: int,
    pattern: str | None,
    special_tokens: Sequence[str] = (),
    min_frequency: int = 1,
    ties: Ties = "lowest",
    byte_order: ByteOrder = "gpt2",
    name: str = "trained",
    progress: Report | None = None,
    threads: int = 0,
    memory_bytes: int | None = None,
    backend: BackendName | None = None,
) -> Encoding:
    """Train an encoding.

    Args:
        corpus: Texts, each a unit across whose ends nothing merges; or pre-tokens and how often
            each stands, in the order of first occurrence. A corpus that is one string is refused.
        vocab_size: How many tokens there are to be: the 256 bytes, the merges and the special
            tokens, at least 256 + len(special_tokens).
        pattern: A name of `patterns.PATTERNS` or a regular expression; None to let merges go
            across the whole of each text.
        special_tokens: In the order of their ids, which follow those of the ordinary tokens. They
            are not looked for in the texts.
        min_frequency: How often a pair must stand to be merged, from 1.
        ties: Which of several most frequent pairs is merged; see `settings.TrainingSettings`.
        byte_order: The order of the bytes' ids: "gpt2", or "value".
        name: The name of the encoding.
        progress: Called with a `Progress` some ten times a second; what it raises ends the
            training.
        threads: The most threads that count; 0 for one for each core. The table is the same.
        memory_bytes: What counts may take while texts are read, before they go to temporary
            files; None for no limit. The table is the same.
        backend: "native" or "reference"; None for native where the core is built.
    Returns:
        The encoding. It has fewer tokens than requested, `n_vocab`, where no pair was left that
        stands often enough.
    Raises:
        InvalidOption: An argument is outside its domain.
        VocabularyError: The pattern is not one.
        InvalidUnicode: A text has a lone surrogate.
        TrainingError: There is no text, or more than can be counted.

    >>> encoding = train(["low lower lowest"], vocab_size=260, pattern=" ?[a-z]+")
    >>> [encoding.decode_single_token_bytes(i) for i in range(256, 260)]
    [b'lo', b'low', b' low', b' lowe']
    """
    settings = TrainingSettings.checked(
        vocab_size=vocab_size,
        pattern=pattern,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        ties=ties,
        byte_order=byte_order,
    )
    if isinstance(corpus, (str, bytes)):
        raise InvalidOption("corpus", "must be texts, not one text: give [text]")
    if resolve(backend).name == "reference":
        trained = merge_by_reference(_reference_counts(corpus, settings.pattern), settings)
    else:
        trained = _native(corpus, settings, progress, threads, memory_bytes)
    return encoding_of(trained, name=name, backend=backend)


def encoding_of(trained: Trained, *, name: str, backend: BackendName | None = None) -> Encoding:
    """The encoding of a merge table.

    Raises:
        VocabularyError: The pattern is one that the backend does not run.
    """
    core = resolve(backend)
    pattern = trained.settings.pattern
    return build_encoding(
        core,
        core.from_items((token, rank) for rank, token in enumerate(trained.tokens)),
        name=name,
        pattern=WHOLE_TEXT if pattern is None else pattern,
        special_tokens=trained.special_tokens,
        source="trained",
        table_source=name,
        resources=Resources(),
    )


def _native(
    corpus: Corpus,
    settings: TrainingSettings,
    progress: Report | None,
    threads: int,
    memory_bytes: int | None,
) -> Trained:
    from bytepair_engine.training.counting import Counting, counts_of, text_batches

    if isinstance(corpus, Mapping):
        return merge_counts(counts_of(corpus), settings, progress)
    pattern, wanted = settings.pattern, settings.ordinary_tokens
    with Counting(pattern, threads=threads, memory_bytes=memory_bytes) as counting:
        for batch in text_batches(corpus, pattern):
            counting.add(batch)
            if progress is not None:
                progress(Progress("count", counting.bytes, 0, 256, wanted))
        counts = counting.counts()
    return merge_counts(counts, settings, progress)


def _reference_counts(corpus: Corpus, pattern: str | None) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    if isinstance(corpus, Mapping):
        for word, count in corpus.items():
            data = word.encode() if isinstance(word, str) else word
            counts[data] = counts.get(data, 0) + count
        return counts
    for text in corpus:
        check_unicode(text)
        for piece in split(text, pattern or WHOLE_TEXT):
            data = piece.encode()
            counts[data] = counts.get(data, 0) + 1
    return counts
