"""The function `train`, which trains an encoding on texts or counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.backends.reference import check_unicode, split
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption, check_type, wrong_type
from bytepair_engine.resources import Resources
from bytepair_engine.training.merging import (
    Progress,
    Report,
    Trained,
    checked_counts,
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
        corpus: Texts, across whose ends nothing merges; or a mapping from pre-token to count, in
            order of first occurrence. A single string is rejected.
        vocab_size: Number of tokens: the 256 bytes, the merges and the special tokens; at least
            256 + len(special_tokens).
        pattern: A name in `patterns.PATTERNS` or a regular expression; None to let merges cross the
            whole of each text.
        special_tokens: The special tokens in order of ids, which follow those of ordinary tokens.
            The texts are not searched for them.
        min_frequency: Minimum count of a pair to merge, at least 1.
        ties: The rule for pairs with equal counts; see `settings.TrainingSettings`.
        byte_order: The order of the ids of bytes: "gpt2" or "value".
        name: The name of the encoding.
        progress: Called with a `Progress` about ten times per second; an exception that it raises
            ends the training.
        threads: Maximum number of threads that count; 0 for one per core. Does not change the
            result.
        memory_bytes: Maximum memory of counts, above which they go to temporary files; None for no
            limit. Does not change the result.
        backend: "native" or "reference"; None for native if the core is built, else reference.
    Returns:
        The encoding. Its `n_vocab` is smaller than requested if no remaining pair is frequent
        enough.
    Raises:
        InvalidOption: An argument is invalid.
        VocabularyError: The pattern is invalid.
        InvalidUnicode: A text has a lone surrogate; the error has the index of the text.
        TrainingError: There is no text, or too much to count.

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
        raise InvalidOption("corpus", "must be a collection of texts, not one text: use [text]")
    try:
        iter(corpus)
    except TypeError:
        raise wrong_type("corpus", "texts or counts", corpus) from None
    check_type("name", name, str, "str")
    if not callable(progress) and progress is not None:
        raise wrong_type("progress", "callable or None", progress)
    if resolve(backend).name == "reference":
        trained = merge_by_reference(_reference_counts(corpus, settings.pattern), settings)
    else:
        trained = _native(corpus, settings, progress, threads, memory_bytes)
    return encoding_of(trained, name=name, backend=backend)


def encoding_of(trained: Trained, *, name: str, backend: BackendName | None = None) -> Encoding:
    """Build the encoding of a trained vocabulary.

    Raises:
        VocabularyError: The backend cannot run the pattern.
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
    from bytepair_engine.training.counting import Counting, counts_of

    if isinstance(corpus, Mapping):
        return merge_counts(counts_of(corpus), settings, progress)
    wanted = settings.ordinary_tokens
    with Counting(settings.pattern, threads=threads, memory_bytes=memory_bytes) as counting:
        for counted in counting.add_all(corpus):
            if progress is not None:
                progress(Progress("count", counted, 0, 256, wanted))
        counts = counting.counts()
    return merge_counts(counts, settings, progress)


def _reference_counts(corpus: Corpus, pattern: str | None) -> dict[bytes, int]:
    items = checked_counts(corpus) if isinstance(corpus, Mapping) else _pretokens(corpus, pattern)
    counts: dict[bytes, int] = {}
    for data, count in items:
        counts[data] = counts.get(data, 0) + count
    return counts


def _pretokens(texts: Iterable[str], pattern: str | None) -> Iterator[tuple[bytes, int]]:
    for index, text in enumerate(texts):
        check_type(f"corpus: text {index}", text, str, "str")
        check_unicode(text, index)
        for piece in split(text, pattern or WHOLE_TEXT):
            yield piece.encode(), 1
