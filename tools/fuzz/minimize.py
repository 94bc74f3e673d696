"""The least input that fails alike: pieces are left out while it does (Zeller's ddmin), then bytes become zero."""

import time
from collections.abc import Callable
from typing import Final

MOST_TRIES: Final = 3000
MOST_SECONDS: Final = 60.0


def minimized(data: bytes, fails: Callable[[bytes], bool], tries: int = MOST_TRIES) -> bytes:
    """`fails` is true of `data`; it is called `tries` times at most, and no more after `MOST_SECONDS`."""
    left, until = tries, time.monotonic() + MOST_SECONDS
    size = len(data) // 2
    while size and left > 0:
        at = 0
        while at < len(data) and left > 0 and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            left -= 1
            if fails(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    for at in range(len(data)):
        if not data[at] or left <= 0 or time.monotonic() > until:
            continue
        plainer = data[:at] + b"\0" + data[at + 1 :]
        left -= 1
        data = plainer if fails(plainer) else data
    return data
