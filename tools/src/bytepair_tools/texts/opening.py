"""Open files and standard input, and decompress them if their content is compressed."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from bytepair_tools.shared.failure import Failure

if TYPE_CHECKING:
    from typing_extensions import Buffer

STANDARD_INPUT: Final = "-"
CHUNK_BYTES: Final = 1 << 20

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_PARQUET: Final = b"PAR1"


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file for the duration of the block.

    Args:
        name: The file name; STANDARD_INPUT for standard input.
    Raises:
        OSError: The file cannot be opened.
        Failure: The package for its compression is not installed, or it is a Parquet file.
    """
    with sys.stdin.buffer if name == STANDARD_INPUT else Path(name).open("rb") as raw:
        start = cast(io.BufferedReader, raw).peek(4)[:4]
        if start.startswith(_GZIP):
            with gzip.GzipFile(fileobj=raw) as file:
                yield cast(BinaryIO, file)
        elif start == _ZSTD:
            with io.BufferedReader(_Zstd(raw, name), CHUNK_BYTES) as file:
                yield cast(BinaryIO, file)
        elif start == _PARQUET:
            raise Failure(f"{shown(name)}: a Parquet file; use --format parquet")
        else:
            yield raw


def shown(name: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if name == STANDARD_INPUT else name


class _Zstd(io.RawIOBase):
    """Reads zstd frames. Unlike the package's own reader, it detects a truncated file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        try:
            import zstandard
        except ImportError:
            raise Failure(
                f"{shown(name)}: reading zstd needs zstandard: pip install bytepair-tools[zstd]"
            ) from None
        self._file = file
        self._error: type[Exception] = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Read the bytes that are available.

        Raises:
            EOFError: The file is truncated or damaged.
        """
        while not self._output:
            self._input = self._input or self._file.read(CHUNK_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("its last frame is truncated")
                return 0
            self._frame = self._frame or self._new_frame()
            try:
                self._output = memoryview(self._frame.decompress(self._input))
            except self._error as error:
                raise EOFError(str(error)) from None
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._output))
        target[:count] = self._output[:count]
        self._output = self._output[count:]
        return count
