"""The store of captured bytes: regions (mapped files, blocks of memory) in one address space.

An address is a plain int64, so columns can hold it. Payload is located, and not copied until it is read.

Invariants:
  * an address means the same bytes for the life of the store; a region may grow, within its room;
  * regions do not overlap; every region starts on a new multiple of `ALIGN`, so that small regions stay apart;
  * resident pages of mapped files are released now and then: memory stays flat, however much is read.
"""

import mmap
import time
from bisect import bisect_right
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8, UInt64
from dissector.core.grouping import cuts
from dissector.core.mapped_files import intact_size
from dissector.core.process_memory import is_tight

ALIGN: Final = 1 << 12
ROOM: Final = 1 << 42
"""Addresses reserved for a region that grows: more than any disk has."""
FAULT: Final = 1 << 21
"""Bytes that one read of a mapped file may make resident: some kernels map all of a large page of their cache."""
RESIDENT: Final = 1 << 24
"""Bytes read before pages of mapped files are released."""
COPIED: Final = 1 << 23
"""Bytes that are copied, if they lie further apart than may be resident at once."""

LOOK_SECONDS: Final = 0.01
"""Seconds between two looks at the sizes of mapped files."""


class Excerpt(NamedTuple):
    """Some of a store's bytes."""

    end: int
    """An address behind all regions of the store."""
    pieces: list[tuple[int, bytes]]
    """Address and bytes, ascending; they do not overlap."""


class Store:
    """An append-only address space over buffers."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._regions: list[memoryview] = []
        self._end = 0
        self._read_bytes = 0
        self._read_to = 0
        """The end of the last read: one near it takes few other pages."""
        self._looked = 0.0
        self._is_cut = False
        """Whether a mapped file had become shorter then."""

    def add(self, region: memoryview | bytes) -> int:
        """Add a buffer and return the address of its first byte. The buffer must not change or shrink."""
        base = self.reserve(len(region))
        self.fill(base, memoryview(region))
        return base

    def reserve(self, room: int = ROOM) -> int:
        """Return the address of a new, empty region that may grow to `room` bytes."""
        base = self._end
        self._bases.append(base)
        self._regions.append(memoryview(b""))
        self._end = (base + room + ALIGN) // ALIGN * ALIGN
        return base

    def fill(self, base: int, region: memoryview) -> None:
        """Replace the region at `base` by a longer one: the same bytes and more, perhaps mapped elsewhere."""
        self._regions[bisect_right(self._bases, base) - 1] = region.cast("B") if len(region) else memoryview(b"")

    def read(self, address: int, size: int) -> memoryview:
        """Return `size` bytes at `address`, without a copy. They lie in one region."""
        at = bisect_right(self._bases, address) - 1
        start = address - self._bases[at]
        view = self._regions[at][start : start + size]
        if len(view) != size:
            raise IndexError(f"{size} bytes at address {address} run past their region")
        self._read_bytes += size + min(FAULT, abs(address - self._read_to))
        self._read_to = address + size
        if self._read_bytes > RESIDENT:
            self._release_if_tight()
        return view

    def join(self, addresses: Int64, sizes: Int64) -> bytes:
        """Copy the bytes at addresses, `(n,)`, one behind the other. Each stretch lies in one region."""
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        self._count(addresses, int(sizes.sum()))
        starts = addresses - np.asarray(self._bases, np.int64)[regions]
        rows = zip(regions.tolist(), starts.tolist(), (starts + sizes).tolist(), strict=True)
        return b"".join([self._regions[at][start:end] for at, start, end in rows])

    def read_intact(self, address: int, size: int) -> memoryview:
        """Return the same bytes, without those that their file has lost since it was mapped."""
        view = self.read(address, size)
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            self._is_cut = any(intact_size(each.obj) not in (None, len(each)) for each in self._regions)
        if not self._is_cut:
            return view
        at = bisect_right(self._bases, address) - 1
        intact = intact_size(self._regions[at].obj)
        return view if intact is None else view[: max(0, intact - (address - self._bases[at]))]

    def gather(self, addresses: Int64, width: int) -> UInt8:
        """Return the `width` bytes at each address, `(n, width)`. Past a region's end its last byte is repeated."""
        result = np.empty((len(addresses), width), np.uint8)
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        for part in self._parts(addresses):
            self._count(addresses[part], width * len(part))
            for at in np.flatnonzero(np.bincount(regions[part])).tolist():
                rows = part[regions[part] == at]
                data = np.frombuffer(self._regions[at], np.uint8)
                result[rows] = _windows(data, addresses[rows] - self._bases[at], width)
        return result

    def pointers(self, addresses: Int64, sizes: Int64) -> tuple[UInt64, object]:
        """Where in memory the bytes at each address are, `(n,)`, 0 where they are not all there, and what keeps that
        memory: for native code. Few bytes that lie far apart are copied where memory is tight."""
        found = np.zeros(len(addresses), np.uint64)
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        keep = []
        for at in np.flatnonzero(np.bincount(regions)).tolist() if len(addresses) else ():
            intact = intact_size(self._regions[at].obj)
            data = np.frombuffer(self._regions[at][: len(self._regions[at]) if intact is None else intact], np.uint8)
            starts = addresses - self._bases[at]
            rows = (regions == at) & (starts >= 0) & (sizes >= 0) & (sizes <= len(data) - starts)
            found[rows] = (starts[rows] + data.ctypes.data).astype(np.uint64)
            keep.append(data)
        there = np.flatnonzero(found)
        parts = self._parts(addresses[there]) if sizes[there].sum() <= COPIED else []
        if len(parts) < 2:
            self._count(addresses, int(sizes.sum()))
            return found, keep
        order = there[np.concatenate(parts)]
        stops = np.cumsum(sizes[order])
        copy = np.empty(int(stops[-1]), np.uint8)
        found[order] = (stops - sizes[order] + copy.ctypes.data).astype(np.uint64)
        start = 0
        for part in parts:
            joined = self.join(addresses[there[part]], sizes[there[part]])
            copy[start : start + len(joined)] = np.frombuffer(joined, np.uint8)
            start += len(joined)
        return found, copy

    def _parts(self, addresses: Int64) -> list[Int64]:
        """Return the places of addresses in parts that are read one after the other, so that fewer pages are resident
        at once: in one, unless they lie far apart and memory is tight."""
        every = np.arange(len(addresses))
        between = int(np.ptp(addresses)) if len(addresses) else 0
        if between <= RESIDENT or not is_tight(min(between, FAULT * len(addresses))):
            return [every]
        order = np.argsort(addresses, kind="stable")
        is_next = np.diff(addresses[order] // FAULT, prepend=-1) > 0
        return np.split(order, cuts(FAULT * is_next, RESIDENT))

    def span(self, address: int, end: int) -> bytes:
        """Copy the bytes from one address to another, as far as their region has them."""
        at = bisect_right(self._bases, address) - 1
        start = address - self._bases[at]
        return bytes(self._regions[at][start : start + end - address])

    def excerpt(self, address: Int64, size: Int64) -> "Excerpt":
        """Copy the bytes at these addresses, `(n,)`: each once, adjacent ones in one piece."""
        order = np.argsort(address, kind="stable")
        starts, ends = address[order], np.maximum.accumulate((address + size)[order])
        begins = np.flatnonzero(np.concatenate([[True], starts[1:] > ends[:-1]])[: len(starts)])
        pieces = zip(
            starts[begins].tolist(), ends[np.append(begins[1:], len(ends))[: len(begins)] - 1].tolist(), strict=True
        )
        return Excerpt(self._used(), [(start, bytes(self.read(start, end - start))) for start, end in pieces])

    @classmethod
    def of(cls, excerpt: "Excerpt") -> "Store":
        """Make a store that has an excerpt's bytes, at their addresses. New regions come behind all of the original.
        Raises `ValueError` for pieces that are none of a store."""
        store, end = cls(), 0
        for address, data in excerpt.pieces:
            if address < end:
                raise ValueError("pieces that overlap, or are in no order")
            end = address + len(data)
            store._bases.append(address)
            store._regions.append(memoryview(data))
        if excerpt.end < end:
            raise ValueError("pieces behind the end")
        store._end = excerpt.end
        return store

    def _used(self) -> int:
        """Return the first multiple of `ALIGN` behind all bytes. Room into which no region grew is free."""
        last = self._bases[-1] + len(self._regions[-1]) if self._bases else self._end
        return (last + 2 * ALIGN) // ALIGN * ALIGN

    def _count(self, addresses: Int64, size: int) -> None:
        """Count that many bytes at addresses, which are read next, with the pages around each or, if these are fewer,
        all between the first and the last. What was read before is released if it would be too much with them."""
        if not len(addresses):
            return
        between = int(addresses.max()) - int(addresses.min())
        new = size + min(FAULT * len(addresses), between + FAULT)
        if self._read_bytes + new > RESIDENT:
            self._release_if_tight()
        self._read_bytes += new

    def _release_if_tight(self) -> None:
        """Release pages, unless there is memory enough: reading them again takes time."""
        self._read_bytes = 0
        if is_tight():
            self.release_pages()

    def release_pages(self) -> None:
        """Release the resident pages of mapped files; reading brings them back from the page cache."""
        self._read_bytes = 0
        for view in self._regions:
            if isinstance(view.obj, mmap.mmap):
                view.obj.madvise(mmap.MADV_DONTNEED)

    def release(self) -> None:
        """Release all regions, so that mapped files can be closed."""
        for view in self._regions:
            view.release()
        self._regions.clear()
        self._bases.clear()


def _windows(data: UInt8, starts: Int64, width: int) -> UInt8:
    """Return the `width` bytes from each start on, each copied at once, except near the end."""
    last = len(data) - width
    if last < 0 or (starts > last).any():
        return data.take(starts[:, None] + np.arange(width), mode="clip")
    whole = np.ndarray((last + 1,), f"V{width}", data, strides=(1,))[starts]
    return whole.view(np.uint8).reshape(-1, width)
