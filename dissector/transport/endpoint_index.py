"""A hash table of the pairs of endpoints in use. Lookups and insertions work on columns.

A pair has no direction. Its key is both endpoints whole, lower one first, as five words (`tcp.c` makes it): two of each
address, and the ports. Keys with equal hashes are compared. The multipliers of the hash are random in each process, so
nobody can craft a capture whose keys collide.

Entries are numbered from 0 in order of insertion; `keep` renumbers those that stay.
"""

import os
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.kernel import kernel_function

_find_pairs = kernel_function("find_pairs", "PPqPqPP")

"""Keys: `(n, 5)`."""
_Word = TypeVar("_Word", np.int64, np.uint64)
WORDS: Final = 5
NOT_THERE: Final = -1
_FIRST_BITS: Final = 10


def _roomy(rows: npt.NDArray[_Word], room: int) -> npt.NDArray[_Word]:
    """Copy rows to an array with room behind them."""
    column = np.empty((room, *rows.shape[1:]), rows.dtype)
    column[: len(rows)] = rows
    return column


class EndpointIndex:
    """The table. `connection` and `last` are columns of the entries: the newest connection of each, its last packet."""

    def __init__(self) -> None:
        self._factors: UInt64 = np.frombuffer(os.urandom(8 * (WORDS + 1)), np.uint64) | np.uint64(1)
        self._keys: UInt64 = np.zeros((1 << _FIRST_BITS, WORDS), np.uint64)
        self._connection: Int64 = np.zeros(1 << _FIRST_BITS, np.int64)
        self._last: Int64 = np.zeros(1 << _FIRST_BITS, np.int64)
        self._size = 0
        self._bits = _FIRST_BITS + 1
        self._table = np.full(1 << self._bits, NOT_THERE, np.int32)

    def __len__(self) -> int:
        return self._size

    @property
    def keys(self) -> UInt64:
        return self._keys[: self._size]

    @property
    def connection(self) -> Int64:
        return self._connection[: self._size]

    @property
    def last(self) -> Int64:
        return self._last[: self._size]

    def hashed(self, keys: UInt64) -> UInt64:
        """Return a hash of each key, one word."""
        mixed: UInt64 = keys[:, 0] * self._factors[0]
        for word in range(1, WORDS):
            mixed += keys[:, word] * self._factors[word]
        mixed ^= mixed >> np.uint64(32)
        mixed *= self._factors[WORDS]
        return mixed

    def find(self, keys: UInt64) -> Int64:
        """Return the entry of each key, `NOT_THERE` where it has none."""
        keys, places, entry = np.ascontiguousarray(keys), self._places(keys), np.empty(len(keys), np.int64)
        _find_pairs()(
            keys.ctypes.data, places.ctypes.data, len(keys), self._table.ctypes.data, len(self._table) - 1,
            self._keys.ctypes.data, entry.ctypes.data,
        )  # fmt: skip
        return entry

    def _places(self, keys: UInt64) -> Int64:
        return (self.hashed(keys) >> np.uint64(64 - self._bits)).astype(np.int64)

    def add(self, keys: UInt64, connection: Int64, packet: Int64) -> Int64:
        """Insert keys that differ and are not there; return their entries."""
        first, end = self._size, self._size + len(keys)
        if end > len(self._keys):
            room = max(end, 2 * len(self._keys))
            self._keys = _roomy(self.keys, room)
            self._connection, self._last = _roomy(self.connection, room), _roomy(self.last, room)
        self._keys[first:end], self._connection[first:end], self._last[first:end] = keys, connection, packet
        self._size = end
        if 2 * end > len(self._table):
            self._rebuild()
        else:
            self._insert(first)
        return np.arange(first, end)

    def keep(self, stay: Bool) -> None:
        """Delete the other entries."""
        size = int(stay.sum())
        room = max(1 << _FIRST_BITS, 2 * size)
        self._keys = _roomy(self.keys[stay], room)
        self._connection, self._last = _roomy(self.connection[stay], room), _roomy(self.last[stay], room)
        self._size = size
        self._rebuild()

    def _rebuild(self) -> None:
        self._bits = max(_FIRST_BITS, (2 * len(self._keys) - 1).bit_length())
        self._table = np.full(1 << self._bits, NOT_THERE, np.int32)
        self._insert(0)

    def _insert(self, first: int) -> None:
        """Put the entries from `first` on in the next free places. Where more than one competes, the last one wins."""
        entry = np.arange(first, self._size)
        place = self._places(self._keys[first : self._size])
        while len(entry):
            free = self._table[place] == NOT_THERE
            self._table[place[free]] = entry[free]
            remaining = self._table[place] != entry
            entry, place = entry[remaining], (place[remaining] + 1) & (len(self._table) - 1)
