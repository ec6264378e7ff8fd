"""One hostile client, in a process of its own, so that its work is not its victims' wait."""

from __future__ import annotations

import sys

from support import hostile

if __name__ == "__main__":
    name, address, seconds = sys.argv[1:]
    hostile.prepare()
    attack = (hostile.ATTACKS | hostile.BEYOND)[name]
    print(attack(address, hostile.going_for(float(seconds))))
