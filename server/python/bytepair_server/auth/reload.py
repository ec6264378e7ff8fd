"""Reload files while the server runs: when one changes, and only if it is good.

A bad one changes nothing: the previous files stay in use, the log says why, and
`bytepair_reload_failed` is 1 until the file is good again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics

#: How often is looked: a change is read once two looks have found the same, so that a file that
#: is being written is not read in the middle, which may look whole. The files are small: reading
#: them costs nothing to speak of, and no time of change, size or inode tells as surely as their
#: content.
LOOK_SECONDS: Final = 0.5

#: What files hold, to be compared.
Contents = tuple[bytes | None, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watched(Generic[T]):
    """What is read from some files.

    Attributes:
        what: Its name in the log and in metrics.
        paths: The files.
        read: Reads them all; raises ConfigurationError. Runs on a thread.
        use: Takes what was read. Runs on the event loop.
    """

    what: str
    paths: Sequence[Path]
    read: Callable[[], T]
    use: Callable[[T], None]


class Reloader:
    """Looks at files, for as long as `run` runs."""

    def __init__(
        self,
        watched: Sequence[Watched[Any]],
        seen: Mapping[str, Contents],
        metrics: Metrics,
        log: logs.Log,
    ) -> None:
        """Look at nothing yet.

        Args:
            watched: What to read again.
            seen: `contents` of the files of each, from before they were read first: a change
                between the two is then seen too.
            metrics: What is counted.
            log: Where reloads are logged.
        """
        self._watched: Final = watched
        self._metrics: Final = metrics
        self._log: Final = log
        self._seen: Final = dict(seen)
        self._last: Final = dict(seen)
        for each in watched:
            metrics.reload_failed.labels(each.what).set(0)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while self._watched:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look once."""
        for each in self._watched:
            await self._look(each)

    async def _look(self, watched: Watched[Any]) -> None:
        # Before they are read: what changes in between is seen the next time.
        found = await asyncio.to_thread(contents, watched.paths)
        is_steady, self._last[watched.what] = found == self._last[watched.what], found
        if not is_steady or found == self._seen[watched.what]:
            return
        self._seen[watched.what] = found
        try:
            watched.use(await asyncio.to_thread(watched.read))
        except Exception as error:
            # Whatever is wrong with a file, the others are still to be looked at.
            self._metrics.reloaded(watched.what, ok=False)
            known = isinstance(error, ConfigurationError)
            self._log.error(
                "reload failed: the previous files stay in use",
                what=watched.what,
                error=str(error) if known else logs.frames(error),
            )
        else:
            # Before it is logged, so that a reader of the log finds the same in the metrics.
            self._metrics.reloaded(watched.what, ok=True)
            self._log.info("reloaded", what=watched.what)


def contents(paths: Sequence[Path]) -> Contents:
    """A hash of each file; None for one that cannot be read."""
    return tuple(_hash(path) for path in paths)


def _hash(path: Path) -> bytes | None:
    try:
        # A pipe would have its reader wait for ever.
        return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None
    except OSError:
        return None
