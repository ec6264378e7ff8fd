"""Reload files that change while the server runs.

If the new files are invalid, the previous ones stay in use, the log says why, and
`bytepair_reload_failed` is 1 until they are valid.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics

#: Time between two checks. A change is loaded after two checks have found the same content, so that
#: a file is not read while it is written. The content is compared, because times, sizes and inodes
#: can stay the same; the files are small.
CHECK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """Files that are loaded together.

    Attributes:
        what: Their name in the log and in metrics.
        paths: The files.
        read: Loads them; raises ConfigurationError. Runs on a thread.
        use: Takes the loaded value. Runs on the event loop.
    """

    what: str
    paths: Sequence[Path]
    read: Callable[[], Any]
    use: Callable[[Any], None]


class Reloader:
    """Checks files while `run` runs."""

    def __init__(self, watched: Sequence[Watched], metrics: Metrics, log: logs.Log) -> None:
        """Note the present content of the files: make it before they are first loaded, so that no
        change is missed."""
        self._watched: Final = watched
        self._metrics: Final = metrics
        self._log: Final = log
        self._seen: Final = {each.what: _contents(each.paths) for each in watched}
        self._last: Final = dict(self._seen)
        for each in watched:
            metrics.reload_failed.labels(each.what).set(0)

    async def run(self) -> None:
        """Check regularly, until cancelled."""
        while self._watched:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check()

    async def check(self) -> None:
        """Check all files once."""
        for each in self._watched:
            await self._check(each)

    async def _check(self, watched: Watched) -> None:
        # Before they are loaded: the next check sees a change that happens in between.
        found = await asyncio.to_thread(_contents, watched.paths)
        is_steady, self._last[watched.what] = found == self._last[watched.what], found
        if not is_steady or found == self._seen[watched.what]:
            return
        self._seen[watched.what] = found
        try:
            watched.use(await asyncio.to_thread(watched.read))
        except Exception as error:
            # An error in one file must not stop the checks of others.
            self._metrics.reloaded(watched.what, ok=False)
            known = isinstance(error, ConfigurationError)
            self._log.error(
                "reload failed: the previous files stay in use",
                what=watched.what,
                error=str(error) if known else logs.frames(error),
            )
        else:
            # Count first, so that the metrics are current when the line appears.
            self._metrics.reloaded(watched.what, ok=True)
            self._log.info("reloaded", what=watched.what)


def _contents(paths: Sequence[Path]) -> tuple[bytes | None, ...]:
    """A hash of each file; None for one that cannot be read."""
    return tuple(_hash(path) for path in paths)


def _hash(path: Path) -> bytes | None:
    try:
        # Reading a pipe may block forever.
        return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None
    except OSError:
        return None
