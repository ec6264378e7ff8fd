"""Fill the server to its limits: more callers than it admits, each with as much text as it accepts.

    python scripts/full_load.py TARGET CALLERS INPUT_BYTES

The text is Chinese and private-use characters at random, which need the most ids for each byte.
Prints how the calls ended. Ends with status 1 unless each was answered or rejected as overload.
"""

import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from bytepair_client import TokenizerClient, TokenizerError

#: The built-in encoding with the most ids for such text.
ENCODING = "r50k_base"
#: One connection would queue calls in the client before the server sees them.
CONNECTIONS = 8
TIMEOUT_S = 300.0
SEED = 1


def hard_text(size: int) -> str:
    """Return text of `size` UTF-8 bytes, or up to three fewer."""
    chance = random.Random(SEED)
    ranges = (range(0x4E00, 0x9FA6), range(0xF0000, 0xFFFFE))
    text = "".join(chr(chance.choice(chance.choice(ranges))) for _ in range(size // 3))
    return text.encode()[:size].decode(errors="ignore")


def main() -> None:
    target, callers, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    text = hard_text(size)
    clients = [TokenizerClient(target) for _ in range(CONNECTIONS)]

    def one_call(number: int) -> str:
        try:
            ids = clients[number % CONNECTIONS].encode(text, encoding=ENCODING, timeout=TIMEOUT_S)
        except TokenizerError as error:
            return type(error).__name__
        return f"answered with {len(ids)} ids"

    with ThreadPoolExecutor(callers) as pool:
        endings = Counter(pool.map(one_call, range(callers)))
    for client in clients:
        client.close()
    for ending, number in endings.most_common():
        print(f"{number:5} calls of {len(text.encode())} bytes: {ending}")
    answered = sum(number for ending, number in endings.items() if ending.startswith("answered"))
    if not answered or answered + endings["Overloaded"] != callers:
        sys.exit("FAILED: a call was neither answered nor rejected as overload")


if __name__ == "__main__":
    main()
