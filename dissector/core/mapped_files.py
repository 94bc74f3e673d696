"""Mapped files that become shorter while they are read, as those of a ring that rotates.

The kernel sends SIGBUS to a process that reads a page of a map behind the end of its file. Python's own handlers run
too late: the read is repeated before them, forever. So a handler of the C library puts pages of zeros in place of the
missing ones, and the read goes on. Who reads asks `intact_size` how many of the bytes are still the file's.

Copying files in place of mapping them would cost as much memory or disk as a capture has bytes.

Invariants:
  * only pages of maps given to `survive_truncation` are replaced; any other SIGBUS ends the process as before;
  * a read costs nothing, as long as no file becomes shorter.
"""

import contextlib
import ctypes
import mmap
import signal
import sys
import weakref
from typing import Final

import numpy as np

_ADDRESS_AT: Final = {"linux": 16, "darwin": 24}
"""Offset of the address in the `siginfo_t` of the handler, on systems of 64 bits."""
_FIXED: Final = {"linux": 0x10, "darwin": 0x10}
_ANONYMOUS: Final = {"linux": 0x20, "darwin": 0x1000}
_WITH_INFO: Final = {"linux": 0x4, "darwin": 0x40}
"""MAP_FIXED, MAP_ANONYMOUS, SA_SIGINFO."""
_PRIVATE: Final = 0x2
_READ: Final = 0x1
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _LinuxAction(ctypes.Structure):
    _fields_ = (
        ("handler", _Handler), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p),
    )  # fmt: skip


class _DarwinAction(ctypes.Structure):
    _fields_ = (("handler", _Handler), ("mask", ctypes.c_uint32), ("flags", ctypes.c_int))


_maps: Final[dict[int, int]] = {}
"""The maps: the end of each, by its first address."""
_intact: Final[dict[int, int]] = {}
"""How many bytes its file has had at least, by the first address of a map: the file may have grown again."""
_owners: Final[dict[int, weakref.ref[mmap.mmap]]] = {}
"""Which map is meant by an address: once it is closed, another one may have the same."""
_kept: Final[list[object]] = []
"""What the C library has a pointer to."""


def survive_truncation(region: mmap.mmap) -> None:
    """Let reading of a mapped file go on if the file becomes shorter: its missing bytes are zeros."""
    if sys.platform not in _ADDRESS_AT or sys.maxsize < 1 << 32:
        return
    if not _kept:
        _install()
    start = _address(region)
    _maps[start] = start + len(region)
    _intact.pop(start, None)
    _owners[start] = weakref.ref(region, lambda owner: _forget(start, owner))


def _forget(start: int, owner: weakref.ref[mmap.mmap]) -> None:
    if _owners.get(start) is owner:
        del _owners[start], _maps[start]
        _intact.pop(start, None)


def _address(region: mmap.mmap) -> int:
    return int(np.frombuffer(region, np.uint8).__array_interface__["data"][0])


def intact_size(region: object) -> int | None:
    """Return how many bytes the file of a map still has, at most those mapped; None for a buffer that is no map."""
    if not isinstance(region, mmap.mmap):
        return None
    size = len(region)
    with contextlib.suppress(OSError, ValueError):  # an anonymous map has no file
        size = min(size, region.size())
    if size == len(region) and not _intact:
        return size
    start = _address(region)
    if start not in _owners or _owners[start]() is not region:
        return size
    _intact[start] = min(size, _intact.get(start, size))
    return _intact[start]


def _install() -> None:
    system = sys.platform
    library = ctypes.CDLL(None)
    map_pages, set_action, set_default = library.mmap, library.sigaction, library.signal
    map_pages.restype = set_default.restype = ctypes.c_void_p
    map_pages.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    )  # fmt: skip
    set_default.argtypes = (ctypes.c_int, ctypes.c_void_p)
    flags, address_at = _FIXED[system] | _ANONYMOUS[system] | _PRIVATE, _ADDRESS_AT[system]

    def handle(_signal: int, info: int, _context: int) -> None:
        address = ctypes.c_size_t.from_address(info + address_at).value
        page = address - address % mmap.PAGESIZE
        for start, end in list(_maps.items()):
            if start <= address < end:
                _intact[start] = min(page - start, _intact.get(start, end))
                map_pages(page, end - page, _READ, flags, -1, 0)
                return
        set_default(signal.SIGBUS, None)  # the read is repeated, and ends the process

    handler = _Handler(handle)
    action = (_LinuxAction if system == "linux" else _DarwinAction)(handler=handler, flags=_WITH_INFO[system])
    set_action(signal.SIGBUS, ctypes.byref(action), None)
    _kept.extend((handler, action))
