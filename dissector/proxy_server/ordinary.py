"""Frames that go on as they are: the kernel passes over them, and keeps the requests that wait for a response
(`protocol/kernel/ordinary_frames.c`). Python looks at the others: `exchanges.py`.

Invariants:
  * what waits is the same, in the same order, whoever notes it and takes it out;
  * a frame is passed over when its head is there, and is not looked at again.
"""

import ctypes
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from dissector.core.kernel import address, kernel_function, structure_fields

WAITING: Final = """
int64_t capacity, first, count;
uint8_t *requests; /* the API, the version and the correlation id of each, as they stand in it */
"""
"""A ring of requests that wait for their responses: `KernelWaiting` of kernel.h."""
LOOKED_AT: Final = """
int64_t first_version; /* that is not passed over, */
int64_t last_version; /* and the last one that is, if the frame ends plainly: */
int64_t empty, mask, value, some; /* as `PlainEnd` has them */
"""
"""Which frames of an API Python looks at: `KernelLookedAt` of kernel.h."""
ORDINARY: Final = """
int64_t left; /* bytes of the frame that has begun */
int64_t answers; /* whether these are responses */
int64_t apis;
const KernelLookedAt *looked_at; /* by API, of the request */
"""
"""One direction of a connection: `KernelOrdinary` of kernel.h."""
Request = tuple[int, int, int]
"""A request that waits for its response: its correlation id, API and version. A plain tuple: each request has one."""
_NOTED: Final = struct.Struct(">hhi")
_ID: Final = 4
"""Where the correlation id is in it."""
MOST_WAITING: Final = 1 << 17
_FIRST_CAPACITY: Final = 16
LEAST_VERSION: Final = -1 << 15
_NEVER: Final = 1 << 15
"""Above all versions."""
_ordinary_frames = kernel_function("ordinary_frames", "PPPqq")


class _KernelWaiting(ctypes.Structure):
    """As `WAITING`."""

    _fields_ = structure_fields(WAITING)


class _KernelLookedAt(ctypes.Structure):
    """As `LOOKED_AT`."""

    _fields_ = structure_fields(LOOKED_AT)


class _KernelOrdinary(ctypes.Structure):
    """As `ORDINARY`."""

    _fields_ = structure_fields(ORDINARY)


class PendingRequests:
    """Requests of a connection that wait for their responses. Past `MOST_WAITING`, the oldest are forgotten."""

    def __init__(self) -> None:
        self._ring = _KernelWaiting()
        self.address = ctypes.addressof(self._ring)
        self._hold(bytearray(), _FIRST_CAPACITY)

    def __iter__(self) -> Iterator[Request]:
        """Yield them, the oldest first."""
        return ((number, key, version) for key, version, number in _NOTED.iter_unpack(self._in_order()))

    def append(self, request: Request, /) -> None:
        """Note one more."""
        ring = self._ring
        if ring.count == ring.capacity < MOST_WAITING:
            self._hold(self._in_order(), 2 * ring.capacity)
        elif ring.count == ring.capacity:
            self._forget_first()
        correlation_id, key, version = request
        at = (ring.first + ring.count) % ring.capacity * _NOTED.size
        _NOTED.pack_into(self._memory, at, key, version, correlation_id)
        ring.count += 1

    def take(self, correlation_id: int) -> Request | None:
        """Take out the oldest with a correlation id; None if there is none. There may be very many, answered in any
        order: they are searched and moved as bytes."""
        waiting, wanted = self._in_order(), struct.pack(">i", correlation_id)
        at = waiting.find(wanted, _ID)
        while at >= 0 and at % _NOTED.size != _ID:
            at = waiting.find(wanted, at + 1)
        if at < 0:
            return None
        key, version, _ = _NOTED.unpack_from(waiting, at - _ID)
        if at == _ID:
            self._forget_first()
        else:
            del waiting[at - _ID : at - _ID + _NOTED.size]
            self._hold(waiting, self._ring.capacity)
        return correlation_id, key, version

    def _in_order(self) -> bytearray:
        """Return what is noted of them, the oldest first."""
        start, end = (each * _NOTED.size for each in (self._ring.first, self._ring.first + self._ring.count))
        return self._memory[start:end] + self._memory[: max(0, end - len(self._memory))]

    def _forget_first(self) -> None:
        self._ring.first = (self._ring.first + 1) % self._ring.capacity
        self._ring.count -= 1

    def _hold(self, waiting: bytearray, capacity: int) -> None:
        self._memory = waiting + bytes(capacity * _NOTED.size - len(waiting))
        self._ring.capacity, self._ring.first, self._ring.count = capacity, 0, len(waiting) // _NOTED.size
        self._ring.requests = address(memoryview(self._memory))


class PlainEnd(NamedTuple):
    """How a frame ends in which there is nothing to look for. Its last eight bytes are a number."""

    last_version: int
    """The last version of which this is known."""
    empty: int
    """A frame of up to so many bytes may end with anything."""
    mask: int
    """Bits that are those of `value`."""
    value: int
    some: int = 0
    """Bits of which at least one is set; 0 for any."""

    def fits(self, version: int, last: bytes, size: int) -> bool:
        """Whether a frame ends so; `last` are its last eight bytes, or more."""
        number = int.from_bytes(last[-8:], "big")
        is_plain = number & self.mask == self.value and (not self.some or number & self.some != 0)
        return version <= self.last_version and (size <= self.empty or is_plain)


_NO_END: Final = PlainEnd(LEAST_VERSION - 1, 0, 0, 0)


class LookedAt:
    """APIs whose frames Python looks at, from a version on, unless they end plainly."""

    def __init__(self, first_versions: Mapping[int, int], ends: Mapping[int, PlainEnd] = MappingProxyType({})) -> None:
        self.apis = max(first_versions) + 1
        rows = ((first_versions.get(key, _NEVER), *ends.get(key, _NO_END)) for key in range(self.apis))
        self.table = (_KernelLookedAt * self.apis)(*(_KernelLookedAt(*row) for row in rows))


class OrdinaryFrames:
    """Those of one direction."""

    def __init__(self, waiting: PendingRequests, looked_at: LookedAt, *, answers: bool) -> None:
        self._waiting, self._looked_at = waiting, looked_at  # the kernel has their addresses
        self._call = _KernelOrdinary(0, answers, looked_at.apis, ctypes.addressof(looked_at.table))
        self._arguments = ctypes.addressof(self._call), waiting.address
        self._pass_over = _ordinary_frames()

    def end(self, data: bytes | memoryview, at: int, end: int) -> int:
        """Pass over frames from `at` on; return where they end: at `end`, or where Python has to look."""
        if self._call.left >= end - at:  # the middle of a large frame: nothing of it is looked at
            self._call.left -= end - at
            return end
        call, waiting = self._arguments
        return self._pass_over(call, waiting, address(data), at, end)
