"""Files and standard input, open: uncompressed if their content says that they are compressed."""

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
    """Open a file for as long as the block runs.

    Args:
        name: The file's; STANDARD_INPUT for standard input.
    Raises:
        OSError: It cannot be opened.
        Failure: It is compressed by what is not installed, or it is a Parquet file.
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
            raise Failure(f"{shown(name)}: a Parquet file: --format parquet reads it")
        else:
            yield raw


def shown(name: str) -> str:
    """What messages call a file."""
    return "standard input" if name == STANDARD_INPUT else name


class _Zstd(io.RawIOBase):
    """Frames of zstd, one after the other. The package's own reader takes a file that is cut off
    for one that ends there."""

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
            EOFError: The file is cut off, or damaged.
        """
        while not self._output:
            self._input = self._input or self._file.read(CHUNK_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("its last frame is cut off")
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
