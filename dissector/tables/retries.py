"""How often and how soon a commit is tried again that another one made fail.

Invariants:
  * pauses grow and are random, so that those who met do not meet again;
  * it ends: `StorageError` says what others kept from being committed, and how long.
"""

import random
import time
from collections.abc import Iterator
from typing import Final

from dissector.tables.file_systems import LOCAL
from dissector.tables.storage import StorageError

TRIES: Final = 64
FIRST_SECONDS: Final = 0.01
LONGEST_SECONDS: Final = 4.0
"""Of a pause: with `TRIES`, two minutes in all."""


def tries(uri: str) -> Iterator[int]:
    """Yield the numbers of tries, with pauses between, for whoever leaves the loop when one succeeds. `uri` is that of
    a table. Raises `StorageError` after `TRIES`."""
    began, longest = time.monotonic(), FIRST_SECONDS
    for number in range(1, TRIES + 1):
        yield number
        if number < TRIES:
            time.sleep(random.uniform(0, longest))  # no secret
            longest = min(2 * longest, LONGEST_SECONDS)
    seconds = time.monotonic() - began
    name = uri.removeprefix(LOCAL)
    raise StorageError(f"{name}: other commits came first, each of {TRIES} times in {seconds:.0f} s: try again later")
