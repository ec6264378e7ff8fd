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

from bytepair_server.config.loader import ConfigurationError, contents
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics

#: Time between two checks. A change is loaded after two checks have found the same content, so that
#: a file is not read while it is written. The content is compared, because times, sizes and inodes
#: can stay the same; the files are small.
CHECK_SECONDS: Final = 0.5

#: A hash of each file; None for one that cannot be read.
_Hashes = tuple[bytes | None, ...]


@dataclass
class Reloader:
    """Reloads files that belong together while `run` runs. Make it before they are first loaded, so
    that no change is missed.

    Attributes:
        what: The name of the files in the log and in metrics.
        read: Loads them; raises ConfigurationError. Runs on a thread.
        use: Receives the loaded value. Runs on the event loop.
    """

    what: str
    paths: Sequence[Path]
    read: Callable[[], Any]
    use: Callable[[Any], None]
    metrics: Metrics
    log: logs.Log

    def __post_init__(self) -> None:
        self._seen: _Hashes | None = _hashes(self.paths)
        self._last = self._seen
        self._warnings = logs.Occasional()

    async def run(self) -> None:
        """Check regularly, until cancelled. The files were loaded before."""
        self.metrics.reload_failed.labels(self.what).set(0)
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check()

    async def check(self) -> None:
        """Check the files once."""
        try:
            # Before they are loaded: the next check sees a change that happens in between.
            found = await asyncio.to_thread(_hashes, self.paths)
            is_steady, self._last = found == self._last, found
            if not is_steady or found == self._seen:
                return
            self._seen = found
            self.use(await asyncio.to_thread(self.read))
        except Exception as error:
            self.metrics.reloaded(self.what, ok=False)
            known = isinstance(error, ConfigurationError)
            if not known:
                # It may be a lack of threads or memory: the next check tries again.
                self._seen = None
                if not self._warnings.is_due(type(error).__name__):
                    return
            self.log.error(
                "reload failed: the previous files stay in use",
                what=self.what,
                files=[str(path) for path in self.paths],
                error=str(error) if known else logs.frames(error),
                hint="removed keys and authorities still work until the files are valid",
            )
        else:
            # Count first, so that the metrics are current when the line appears.
            self.metrics.reloaded(self.what, ok=True)
            self.log.info("reloaded", what=self.what)


def _hashes(paths: Sequence[Path]) -> _Hashes:
    return tuple(_hash(path) for path in paths)


def _hash(path: Path) -> bytes | None:
    try:
        return hashlib.sha256(contents("", path)).digest()
    except ConfigurationError:
        return None
