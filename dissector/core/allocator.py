"""How this process allocates: what a command frees goes back to the system while it runs.

glibc raises the size from which it maps memory to that of the largest block that was freed, and Arrow's allocator keeps
pages for later. Commands with many short-lived columns then hold twice as much as they use.
"""

import ctypes
import sys
from contextlib import suppress
from typing import Final

_TRIM, _MAP, _ARENAS = -1, -3, -8
"""`M_TRIM_THRESHOLD`, `M_MMAP_THRESHOLD` and `M_ARENA_MAX` of glibc's `malloc.h`."""
MAPPED: Final = 128 << 10
"""Bytes from which blocks are mapped, and go back once they are freed; glibc begins with that, too."""


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
