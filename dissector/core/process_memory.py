"""Memory of a process that runs a command: what is freed goes back to the system, and garbage is rarely searched for.

glibc raises the size from which it maps memory to that of the largest block that was freed, and Arrow's allocator keeps
pages for later. Commands with many short-lived columns then hold twice as much as they use.

Mapping blocks costs up to half of a command's time again where pages are dear. So commands keep glibc's ways, and where
columns come and go, pages of the heap that are free are given back once they are many: `trim`. So are resident pages of
mapped files that can be read again.

Reading makes columns, and decoded rows have no cycles: garbage collection takes up to a fifth of the time, and frees
next to nothing.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_TRIM, _MAP, _ARENAS = -1, -3, -8
"""`M_TRIM_THRESHOLD`, `M_MMAP_THRESHOLD` and `M_ARENA_MAX` of glibc's `malloc.h`."""
MAPPED: Final = 128 << 10
"""Bytes from which blocks are mapped, and go back once they are freed; glibc begins with that, too."""
COLLECTION_THRESHOLD: Final = 500_000
"""Objects between two collections."""
LARGE: Final = 90 << 20
"""Bytes of resident memory, files left out, from which free pages of the heap are given back, ..."""
GROWN: Final = 6 << 20
"""... each time that it grew by so many."""
GROWN_FILES: Final = 4 << 20
"""Bytes by which the resident pages of files grow until they are released."""
TIGHT: Final = 96 << 20
"""Bytes of resident memory from which those of files are released that were read, ..."""
LIBRARIES: Final = 22 << 20
"""... if files have more of them than libraries take, as a rule."""
_STATM: Final = Path("/proc/self/statm")
_BETWEEN: Final = 0.05
"""Seconds between two looks at it."""


@dataclass(slots=True)
class _Heap:
    """What is known of the heap of a command that gives pages back."""

    is_trimmed: bool = False
    resident: int = 0
    """Bytes after the last time."""
    of_files: int = 0
    """Resident bytes of files, the fewest since they were released."""
    looked: float = 0


_HEAP: Final = _Heap()
_RELEASING: Final[list[Callable[[], None]]] = []


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


def prepare_arrow() -> None:
    """Have all of Arrow use the C library's memory, unless its user says otherwise. To be called before Arrow is
    imported: what `return_freed_memory` sets is not for the buffers of Parquet files."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def trim() -> None:
    """Give back the free pages of the heap, and those of files, if they grew, while a command runs that wants that. It
    may be called often."""
    now = time.monotonic()
    if not _HEAP.is_trimmed or now < _HEAP.looked + _BETWEEN:
        return
    _HEAP.looked = now
    resident, of_files = _resident()
    if of_files > _HEAP.of_files + GROWN_FILES:
        for release in _RELEASING:
            release()
        of_files = _HEAP.of_files = _resident()[1]
    _HEAP.of_files = min(_HEAP.of_files, of_files)
    if resident > max(LARGE, _HEAP.resident + GROWN):
        _malloc_trim()(0)
        _HEAP.resident = _resident()[0]


def collect(least: int = LARGE) -> None:
    """Free garbage and give back the free pages of the heap, if so many bytes are resident: for between two steps of a
    command, of which the first leaves a capture behind."""
    if _resident()[0] >= least:
        gc.collect()
        _malloc_trim()(0)


def is_tight(more: int = 0) -> bool:
    """Whether so much is resident, with `more` bytes of files, that pages of files are to be released; true where the
    system does not say."""
    resident, of_files = _resident()
    return not resident or (of_files + more > LIBRARIES and resident + of_files + more > TIGHT)


def release_when_trimmed(release: Callable[[], None]) -> Callable[[], None]:
    """Have `trim` call a function that releases pages of mapped files."""
    _RELEASING.append(release)
    return release


def _resident() -> tuple[int, int]:
    """Return the resident bytes that are no file's, and those that are; zeros where the system does not say."""
    try:
        _, resident, of_files, *_ = map(int, _STATM.read_bytes().split())
    except (OSError, ValueError):
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return (resident - of_files) * page, of_files * page


@cache
def _malloc_trim() -> Callable[[int], object]:
    """Return glibc's function; with another C library one that does nothing."""
    return getattr(ctypes.CDLL(None), "malloc_trim", lambda _pad: 0)


@contextmanager
def giving_back() -> Iterator[None]:
    """Give free pages back within the context: `trim`. For whatever reads captures, however long it runs, but the
    screen, of which several threads read."""
    _HEAP.is_trimmed, _HEAP.resident, _HEAP.of_files = True, 0, _resident()[1]
    try:
        yield
    finally:
        _HEAP.is_trimmed = False


@contextmanager
def infrequent_collection() -> Iterator[None]:
    """Collect infrequently within the context, and give back free pages. Not for the screen, nor in the library: these
    run for long."""
    threshold = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD)
    try:
        with giving_back():
            yield
    finally:
        # All objects become old ones. Else the threshold would have all that are new searched for cycles at once.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*threshold)
