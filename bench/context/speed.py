"""What truncating and splitting cost, and which laws other splitters break on the same texts.

    make bench-context

With cl100k_base; medians of CPU time. First the library alone, in one process and one thread, then
Truncate over gRPC beside Count.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from operator import truediv
from pathlib import Path
from typing import Any

from bytepair.v1 import context_pb2, tokenizer_pb2
from bytepair_engine import Encoding, PieceTooLong, get_encoding
from bytepair_engine.context.truncating import truncated
from bytepair_engine.errors import BudgetTooSmall
from support.context_formats import other
from support.oracle import set_cache_dir

from bench.service.load import LOAD_CORE, SERVER_CORE, measure, service
from bench.service.shapes import Shape
from bench.service.text import prose

ROUNDS, HOSTILE_ROUNDS, TOKENS = 5, 3, 512
#: Short, because a core's speed changes within seconds.
CALL_ROUNDS, CALL_SECONDS = 21, 0.25
TEXT_BYTES, LONG_BYTES, PEER_BYTES, CALL_BYTES = 2_000_000, 100_000_000, 300_000, 1_000
FEW_TOKENS, MORE_CHARACTERS, SENTENCEPIECE = 4, 50_000, "llama"
SHORT_CHARACTERS, UNDIVIDED_CHARACTERS = 4_000, 1_000
HOSTILE = {
    "one endless word": "pneumonoultramicroscopic" * 10_000,
    "spaces": " " * 200_000,
    "line ends": "\n \n" * 60_000,
    "CR LF": "\r\n" * 100_000,
    "closers after a full stop": "a." + ")]" * 100_000,
    "words whose case decides": "\u3042A" * 60_000,
    "letters with marks": "e\u0301" * 60_000,
    "marks on marks": "Z\u0337\u0322\u031b" * 30_000,
    "only marks": "\u0301" * 100_000,
    "emoji": "\U0001f468\u200d\U0001f469" * 20_000,
    "families": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 8_000,
    "flags": "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7" * 12_000,
    "flags of tags": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e007f" * 10_000,
    "final consonants of Hangul": "\u11a8" * 60_000,
}
#: Texts that are cut beside others, their lengths, and the budgets.
JOINED_CHARACTERS, JOINED_TOKENS, MARKER = 20_000, (100, 1000), " … "
JOINED = {
    "letters": "a",
    "digits": "1234567",
    "spaces": " ",
    "emoji": "🧠👨\u200d👩",
    "Chinese": "日本語的",
}
#: Formats and texts whose counts do not follow from those of shorter starts: all are tried.
UNDIVIDED = {"byte level with an end of word": "ab ", "normalised, NFKC": "e\u0301"}
LAWS_TEXT = (
    "Naïve cafés 🧠 and 👨‍👩‍👧‍👦 families. Flags: 🇩🇪🇫🇷! Two  spaces, a\ttab.\r\n\r\n"
    "日本語の文章です。次の文。\n\nfunctio function functions. Z̷̢̛algo! "
) * 200


def main() -> None:
    """Measure and print."""
    # One thread: the cost of dividing a text between threads is measured elsewhere.
    encoding = get_encoding("cl100k_base", threads=1)
    print(f"{time.strftime('%Y-%m-%d')}, load average {os.getloadavg()[0]:.1f}, CPU time\n")
    show_splits(encoding)
    show_long_text(encoding)
    show_hostile_texts(encoding, HOSTILE, TOKENS, 1000)
    show_joined_texts(encoding)
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: text[:MORE_CHARACTERS] for name, text in HOSTILE.items()}
        show_hostile_texts(other(SENTENCEPIECE, Path(folder))[0], texts, TOKENS, 1000)
        show_undivided(Path(folder))
    show_calls(encoding.count(prose(CALL_BYTES)))
    compare(encoding)


def show_splits(encoding: Encoding) -> None:
    """Measure Split beside Count of the same text, alternately. Both have seen the text."""
    text = prose(TEXT_BYTES)
    size = len(text.encode())
    works: dict[str, Callable[[], object]] = {
        f"Count of {size / 1e6:.1f} MB": lambda: encoding.count(text),
        f"Split into {TOKENS} tokens, level grapheme": lambda: encoding.split(
            text, TOKENS, level="grapheme"
        ),
        "… level paragraph": lambda: encoding.split(text, TOKENS),
        "… 64 shared": lambda: encoding.split(text, TOKENS, overlap_tokens=64),
    }
    took = timed_in_turns(list(works.values()))
    print("| work | ms | MB/s | beside Count |\n|---|---:|---:|---:|")
    for name, times in zip(works, took, strict=True):
        seconds = statistics.median(times)
        beside = statistics.median(map(truediv, took[0], times))
        print(f"| {name} | {1e3 * seconds:.1f} | {size / seconds / 1e6:.1f} | {beside:.2f} |")


def show_long_text(encoding: Encoding) -> None:
    """Show that Truncate reads only as much of a text as it needs."""
    huge = prose(LONG_BYTES)
    last, most = huge[-1_000_000:], huge * 10
    start, end, counted = timed_in_turns(
        [
            lambda: encoding.truncate(most, 1000),
            lambda: encoding.truncate(huge, 1000, keep="end"),
            lambda: encoding.count(last),
        ]
    )
    print("\n| work | ms | beside Count of the last MB |\n|---|---:|---:|")
    for name, times in (
        ("Truncate of 1 GB to 1,000 tokens, start", start),
        ("Truncate of 100 MB to 1,000 tokens, end", end),
        ("Count of the last MB", counted),
    ):
        beside = statistics.median(map(truediv, times, counted))
        print(f"| {name} | {1e3 * statistics.median(times):.2f} | {beside:.2f} |")


def show_hostile_texts(
    encoding: Encoding, texts: Mapping[str, str], tokens: int, kept: int
) -> None:
    """Measure texts without a split point nearby, each figure beside that of a text twice as
    long."""
    shared = tokens // 8
    print(
        f"\n{encoding.name}: Split into {tokens} tokens, with {shared} shared, and the first "
        f"{SHORT_CHARACTERS:,} characters into {FEW_TOKENS}; Truncate to {kept}\n"
    )
    print(
        f"| hostile text | Split MB/s | × | {shared} shared | × | {FEW_TOKENS} tokens | × "
        "| Truncate ms, start | × | end | × |"
    )
    print("|---|" + "---:|" * 10)
    for name, text in texts.items():
        short = text[:SHORT_CHARACTERS]
        works: list[Callable[[], object]] = []
        for whole, part in ((text, short), (text * 2, short * 2)):
            works += [
                partial(encoding.split, whole, tokens),
                partial(encoding.split, whole, tokens, overlap_tokens=shared),
                partial(encoding.split, part, FEW_TOKENS),
                partial(encoding.truncate, whole, kept),
                partial(encoding.truncate, whole, kept, keep="end"),
            ]
        took = [statistics.median(times) for times in timed_in_turns(works, HOSTILE_ROUNDS)]
        twice = [shown(double / once, 2) for once, double in zip(took[:5], took[5:], strict=True)]
        sizes = [len(each.encode()) for each in (text, text, short)]
        figures = [shown(size / took[k] / 1e6, 2) for k, size in enumerate(sizes)]
        figures += [shown(1e3 * seconds, 1) for seconds in took[3:5]]
        cells = [cell for pair in zip(figures, twice, strict=True) for cell in pair]
        print(f"| {name} | {' | '.join(cells)} |")


def show_joined_texts(encoding: Encoding) -> None:
    """Measure texts that are cut beside a marker or beside the start, each figure beside that of a
    text twice as long."""
    print(
        f"\n| {JOINED_CHARACTERS:,} characters | tokens | start and end, ms | × "
        "| start and marker | × | marker and end | × |"
    )
    print("|---|" + "---:|" * 7)
    texts = {"prose": prose(4 * JOINED_CHARACTERS)[: 2 * JOINED_CHARACTERS]}
    texts |= {name: unit * JOINED_CHARACTERS for name, unit in JOINED.items()}
    for (name, long), tokens in product(texts.items(), JOINED_TOKENS):
        works = [
            lambda text=long[:length], options=options: truncated(encoding, text, tokens, **options)  # noqa: B023
            for length in (JOINED_CHARACTERS, 2 * JOINED_CHARACTERS)
            for options in (
                {"keep": "both"},
                {"keep": "start", "marker": MARKER},
                {"keep": "end", "marker": MARKER},
            )
        ]
        took = [statistics.median(times) for times in timed_in_turns(works, HOSTILE_ROUNDS)]
        pairs = zip(took[:3], took[3:], strict=True)
        cells = [
            cell for once, twice in pairs for cell in (shown(1e3 * once, 2), shown(twice / once, 2))
        ]
        print(f"| {name} | {tokens:,} | {' | '.join(cells)} |")


def shown(figure: float, digits: int) -> str:
    """A figure, or – for a text that is rejected."""
    return "–" if math.isnan(figure) else f"{figure:.{digits}f}"


def show_undivided(folder: Path) -> None:
    """Measure the longest text without a split point that other formats accept, in the worst of
    cases."""
    print(f"\n| {UNDIVIDED_CHARACTERS:,} characters, 1 token | Split ms | Truncate ms |")
    print("|---|---:|---:|")
    for name, unit in UNDIVIDED.items():
        encoding, _ = other(name, folder)
        text = (unit * UNDIVIDED_CHARACTERS)[:UNDIVIDED_CHARACTERS]
        split, start = timed_in_turns(
            [lambda: encoding.split(text, 1), lambda: encoding.truncate(text, 1)],  # noqa: B023
            HOSTILE_ROUNDS,
        )
        print(
            f"| {name} | {1e3 * statistics.median(split):.0f} "
            f"| {1e3 * statistics.median(start):.0f} |"
        )


def show_calls(tokens: int) -> None:
    """Measure the CPU time of a Truncate of 1 KB to half of its tokens, and of a Count,
    alternately."""
    text = prose(CALL_BYTES)
    truncate = context_pb2.TruncateRequest(
        encoding="cl100k_base", text=text, max_tokens=tokens // 2
    )
    count = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=text)
    sent = {
        "Count": count,
        "Truncate, start": truncate,
        "Truncate, end": context_pb2.TruncateRequest(keep=context_pb2.KEEP_END),
    }
    sent["Truncate, end"].MergeFrom(truncate)
    cpu: dict[str, list[float]] = {name: [] for name in sent}
    with service(1, SERVER_CORE) as server:
        for _ in range(CALL_ROUNDS):
            for name, request in sent.items():
                rpc = type(request).__name__.removesuffix("Request")
                shape = Shape(name, rpc, request.SerializeToString(), b"", None)
                figures = measure(server, shape, 64, CALL_SECONDS, connections=1, core=LOAD_CORE)
                cpu[name].append(figures.cpu)
    print(f"\n| call of {CALL_BYTES:,} B over gRPC | CPU µs | beside Count |\n|---|---:|---:|")
    for name, found in cpu.items():
        beside = statistics.median(
            one / other for one, other in zip(found, cpu["Count"], strict=True)
        )
        print(f"| {name} | {statistics.median(found):.1f} | {beside:.2f} |")


def timed_in_turns(
    works: Sequence[Callable[[], object]], rounds: int = ROUNDS
) -> list[list[float]]:
    """The CPU seconds of each work in each round."""
    return [
        list(times) for times in zip(*[list(map(timed, works)) for _ in range(rounds)], strict=True)
    ]


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run; NaN for a text that is rejected as too large without split
    points, or because a code point does not fit."""
    start = time.process_time()
    try:
        work()
    except (PieceTooLong, BudgetTooSmall):
        return math.nan
    return time.process_time() - start


def compare(encoding: Any) -> None:
    """Measure other splitters beside this library, and show which laws they break."""
    set_cache_dir()
    text = prose(PEER_BYTES)
    print(
        "\n| splitter | MB/s | of a text in 64 tokens: too long | characters lost | chunks torn |"
        "\n|---|---:|---:|---:|---:|"
    )
    for name, split in {"bytepair": ours(encoding), **peers()}.items():
        rounds = ROUNDS if name == "bytepair" else 1
        seconds = statistics.median(timed(lambda: split(text, TOKENS)) for _ in range(rounds))  # noqa: B023
        chunks = split(LAWS_TEXT, 64)
        over = sum(encoding.count(chunk, disallowed_special=()) > 64 for chunk in chunks)
        broken = sum("\ufffd" in chunk for chunk in chunks)
        lost = max(0, len(LAWS_TEXT) - sum(map(len, chunks)))
        rate = len(text.encode()) / seconds / 1e6
        print(f"| {name} | {rate:.2f} | {over} of {len(chunks)} | {lost} | {broken} |")


Split = Callable[[str, int], list[str]]


def ours(encoding: Any) -> Split:
    """Split with this library."""
    return lambda text, tokens: [chunk.text for chunk in encoding.split(text, tokens)]


def peers() -> dict[str, Split]:
    """Split with other libraries, each used as its documentation says, with tiktoken's
    cl100k_base."""
    import semchunk
    import tiktoken
    from chonkie import TokenChunker
    from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter
    from semantic_text_splitter import TextSplitter

    oracle = tiktoken.get_encoding("cl100k_base")

    def langchain(kind: Any) -> Split:
        def split(text: str, tokens: int) -> list[str]:
            options = {"encoding_name": "cl100k_base", "chunk_size": tokens, "chunk_overlap": 0}
            if kind is TokenTextSplitter:
                splitter = kind(**options)
            else:
                splitter = kind.from_tiktoken_encoder(**options)
            found: list[str] = splitter.split_text(text)
            return found

        return split

    def chonkie(text: str, tokens: int) -> list[str]:
        return [c.text for c in TokenChunker(oracle, chunk_size=tokens, chunk_overlap=0)(text)]

    return {
        "semchunk": lambda text, tokens: list(semchunk.chunkerify(oracle, tokens)(text)),
        "semantic-text-splitter": lambda text, tokens: TextSplitter.from_tiktoken_model(
            "gpt-4", tokens, trim=False
        ).chunks(text),
        "langchain TokenTextSplitter": langchain(TokenTextSplitter),
        "langchain RecursiveCharacter": langchain(RecursiveCharacterTextSplitter),
        "chonkie TokenChunker": chonkie,
    }


if __name__ == "__main__":
    main()
