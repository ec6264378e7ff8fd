"""Read and write rank files in tiktoken's format, as `tiktoken.load`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from bytepair_engine.backends.cores import resolve
from bytepair_engine.vocabulary.builtin import SHA256, builtin_table
from bytepair_engine.vocabulary.file import check_sha256


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Read a rank file as tiktoken does: any line ends, empty lines, repeated tokens. `Encoding`
    checks the ranks.

    Args:
        tiktoken_bpe_file: A path, or the URL of a published table that is included in this
            package: nothing is fetched from the network.
        expected_hash: The SHA-256 of the file in hexadecimal digits; None for no check.
    Raises:
        OSError: The file cannot be read.
        ValueError: The hash differs, a line is invalid, or the URL is unknown.
    """
    if "://" in tiktoken_bpe_file:
        name = tiktoken_bpe_file.rpartition("/")[2].removesuffix(".tiktoken")
        if name not in SHA256 or expected_hash not in (None, SHA256[name]):
            raise ValueError(
                "nothing is fetched from the network: download the file and pass its path"
            )
        return dict(builtin_table(resolve(None), name).items())
    data = Path(tiktoken_bpe_file).read_bytes()
    check_sha256(data, expected_hash, tiktoken_bpe_file)
    ranks = {}
    for number, line in enumerate(data.splitlines(), 1):
        try:
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
        except ValueError:
            problem = "the line is not a token in base64 and a rank"
            raise ValueError(f"{tiktoken_bpe_file}, line {number}: {problem}") from None
    return ranks


def dump_tiktoken_bpe(bpe_ranks: Mapping[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write a rank file in order of ranks."""
    with Path(tiktoken_bpe_file).open("wb") as file:
        file.writelines(
            base64.b64encode(token) + b" %d\n" % rank
            for token, rank in sorted(bpe_ranks.items(), key=lambda item: item[1])
        )
