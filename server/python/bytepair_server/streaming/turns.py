"""Turns of streams on the event loop, where more of their messages have come than it can take at
once.

A caller can send as many small messages as it likes without waiting for answers. Were each computed
as soon as it is read, a thousand streams would have a thousand of them computed in each round of
the loop, and every other call, a probe of health among them, would be a tenth of a second late. So
a round takes few, and the others wait, a message of each stream; flows take turns.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bytepair_server.admission.fair_queue import FairQueue
from bytepair_server.transport.priority import let_others_on

#: What a message costs beside its bytes, in bytes: about what reading and answering it takes.
MESSAGE_BYTES: Final = 256
#: What a round of the loop takes before the others wait: four messages of one id, or one that is
#: larger. Rounds of more took no more messages, and all else waited for longer.
ROUND_BYTES: Final = 1024

Turn = asyncio.Future[None]


class Turns:
    """Whose message is next. For one event loop."""

    def __init__(self) -> None:
        self._queue: Final[FairQueue[tuple[Turn, int]]] = FairQueue(_is_waiting)
        self._left = ROUND_BYTES
        self._is_round_due = False

    def passes(self, size: int) -> bool:
        """Whether a message of so many bytes can be taken at once; if not, `turn` must follow."""
        if self._left <= 0 or self._queue:
            return False
        self._take(size)
        return True

    async def turn(self, flow: str, size: int) -> None:
        """Wait until a message of so many bytes can be taken."""
        turn: Turn = asyncio.get_running_loop().create_future()
        self._queue.put(flow, MESSAGE_BYTES + size, (turn, size))
        await turn

    def _take(self, size: int) -> None:
        self._left -= MESSAGE_BYTES + size
        if not self._is_round_due:
            self._is_round_due = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._is_round_due = False
        self._left = ROUND_BYTES
        while self._left > 0 and self._queue.first() is not None:
            turn, size = self._queue.get()
            turn.set_result(None)
            self._take(size)
        if self._queue:
            let_others_on()


def _is_waiting(waiting: tuple[Turn, int]) -> bool:
    turn, _ = waiting
    return not turn.done()  # its stream is still there
