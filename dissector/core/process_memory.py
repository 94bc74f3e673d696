"""Memory of a process that runs a command: what is freed goes back to the system, and garbage is rarely searched for.

glibc raises the size from which it maps memory to that of the largest block that was freed, and Arrow's allocator keeps
pages for later. Commands with many short-lived columns then hold twice as much as they use.

Reading makes columns, and decoded rows have no cycles: garbage collection takes up to a fifth of the time, and frees
next to nothing.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_TRIM, _MAP, _ARENAS = -1, -3, -8
"""`M_TRIM_THRESHOLD`, `M_MMAP_THRESHOLD` and `M_ARENA_MAX` of glibc's `malloc.h`."""
MAPPED: Final = 128 << 10
"""Bytes from which blocks are mapped, and go back once they are freed; glibc begins with that, too."""
COLLECTION_THRESHOLD: Final = 500_000
"""Objects between two collections."""


def return_freed_memory() -> None:
    """Map large blocks, however many were freed, and share one arena between threads; with another C library than glibc
    nothing changes. So Arrow's, if it was imported."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            for parameter, value in ((_TRIM, MAPPED), (_MAP, MAPPED), (_ARENAS, 1)):
                mallopt(parameter, value)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.set_memory_pool(arrow.system_memory_pool())


@contextmanager
def infrequent_collection() -> Iterator[None]:
    """Collect infrequently within the context. Not for the screen, nor in the library: these run for long."""
    threshold = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD)
    try:
        yield
    finally:
        # All objects become old ones. Else the threshold would have all that are new searched for cycles at once.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*threshold)
