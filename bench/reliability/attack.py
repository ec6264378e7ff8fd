"""One hostile client, in a process of its own, so that its work does not slow the others."""

from __future__ import annotations

import os
import sys

from support import hostile, http2

if __name__ == "__main__":
    name, address, seconds = sys.argv[1:]
    hostile.prepare()
    # Unauthenticated callers have addresses of their own, and some are rejected afterwards.
    http2.come_from(1 + os.getpid() % 65_534)
    print(hostile.ATTACKS[name](address, hostile.going_for(float(seconds))))
