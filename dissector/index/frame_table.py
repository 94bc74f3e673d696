"""All frames of a capture, as columns: where each is, when it began. The bytes stay in the store.

A frame in one piece costs 40 bytes here. Those in pieces (frames across segments) have 16 bytes more, and 16 for each
piece, in columns of their own. What came in one piece came at once.

Frames get numbers by their bytes (`equal_numbers`): what is learned from one need not be learned from its equals.
Invariant: frames with one number have the same bytes, but for those that the caller leaves out. Frames of which a part
was not captured, and long ones, have none.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.batches import NOWHERE, FrameBatch
from dissector.core.columns import Column
from dissector.core.grouping import cuts
from dissector.core.store import Store
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import FramePieces, numbered

PIECES_TOGETHER: Final = 64
"""Pieces of a frame that are looked up at once."""
JOINED: Final = 1 << 15
"""Bytes of a frame in pieces from which on it is joined natively: it has more than twenty of them, as a rule."""
NO_NUMBER: Final = -1
LONGEST: Final = 1 << 16
COPIED_TOGETHER: Final = 1 << 22
"""Bytes of frames that are compared together, and then those that were different, if these are few. Equal frames that
are not have numbers of their own."""


class FrameTable:
    """Growing columns of frames, gaps and unparsed bytes. Row numbers never change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.direction = Column(np.int32)
        self.start = Column(np.int64)
        self.size = Column(np.int32)
        self.time_ns = Column(np.int64)
        self.packet = Column(np.int64)
        self.is_cut = Column(np.bool_)
        """Whether bytes of a frame were cut off from their packets."""
        self.is_alone = Column(np.bool_)
        """Whether a frame is all that one segment has."""
        self._last = Column(np.int64, -1)
        """The last row of each direction, -1 for none."""
        self.cut_frames = 0
        """How many of them there were so far."""
        self.snap_length = 0
        """The most bytes of a packet that the snap length cut; 0 where none is known."""
        self._address = Column(np.int64)
        """Of a frame in one piece; else -2 - its row among the frames in pieces."""
        self._first_piece = Column(np.int64)
        """Of each frame in pieces, the row of its first piece."""
        self._transfer_ns = Column(np.int64)
        """Of each frame in pieces, the time from its first byte to its last one."""
        self._piece_address = Column(np.int64)
        self._piece_size = Column(np.int64)
        self._kept: Int64 = np.zeros(0, np.int64)
        """Rows before `_first` that a checkpoint retained."""
        self._first = 0

    def __len__(self) -> int:
        return len(self.direction)

    def extend(self, batch: FrameBatch) -> int:
        """Append a batch; return the number of its first row."""
        first = len(self)
        self.direction.extend(batch.direction)
        self.start.extend(batch.start)
        self.size.extend(np.minimum(batch.size, 2**31 - 1))
        self.time_ns.extend(batch.time_ns)
        self.packet.extend(batch.packet)
        self.is_cut.extend(batch.is_cut)
        self.cut_frames += int(np.count_nonzero(batch.is_cut))
        counts = np.diff(batch.piece)
        address = batch.piece_address[np.minimum(batch.piece[:-1], len(batch.piece_address) - 1)]
        in_pieces = counts != 1
        rows = np.repeat(in_pieces, counts)
        firsts = np.cumsum(counts[in_pieces]) - counts[in_pieces]
        address[in_pieces] = -2 - len(self._first_piece) - np.arange(len(firsts))
        self._address.extend(address)
        self._first_piece.extend(firsts + len(self._piece_address))
        self._transfer_ns.extend((batch.end_ns - batch.time_ns)[in_pieces])
        self._piece_address.extend(batch.piece_address[rows])
        self._piece_size.extend(batch.piece_size[rows])
        self._find_alone(batch, first, ~in_pieces)
        return first

    def _find_alone(self, batch: FrameBatch, first: int, is_alone: Bool) -> None:
        """Find which frames of a batch, which has the rows from `first` on, are all that a segment has."""
        is_other = np.diff(batch.direction) != 0
        shares = ~is_other & (np.diff(batch.packet) == 0)
        is_alone[1:] &= ~shares
        is_alone[:-1] &= ~shares
        begins = np.flatnonzero(np.concatenate([np.ones(min(1, len(batch)), np.bool_), is_other]))
        directions = batch.direction[begins]
        self._last.grow(int(directions.max(initial=-1)) + 1)
        last = self._last.values[directions]
        goes_on = (last >= 0) & (self.packet.values[last] == batch.packet[begins])
        is_alone[begins[goes_on]] = False
        self.is_alone.values[last[goes_on]] = False
        self._last.values[directions] = first + np.append(begins[1:], len(batch))[: len(begins)] - 1
        self.is_alone.extend(is_alone)

    def transfer_ns(self, rows: Int64) -> Int64:
        """Return the time from the first byte of each frame to its last one, `(n,)`: 0 of one in one piece."""
        address = self._address.values[rows]
        transfer = np.zeros(len(rows), np.int64)
        in_pieces = address < NOWHERE
        transfer[in_pieces] = self._transfer_ns.values[-2 - address[in_pieces]]
        return transfer

    def contiguous(self, rows: Int64) -> Int64:
        """Return the addresses of frames in one piece; negative numbers for the others."""
        return self._address.values[rows]

    def beginnings(self, rows: Int64, width: int | Int64) -> Int64:
        """Return the addresses of the first `width` bytes of frames, or of all of shorter ones, where these are in one
        piece; negative numbers for the others."""
        address, wanted = self._address.values[rows], np.minimum(self.size.values[rows], width)
        in_pieces = np.flatnonzero(address < NOWHERE)
        first = self._first_piece.values[-2 - address[in_pieces]]
        is_enough = self._piece_size.values[first] >= wanted[in_pieces]
        address[in_pieces[is_enough]] = self._piece_address.values[first[is_enough]]
        return address

    def pointers(self, rows: Int64) -> tuple[UInt64, object]:
        """Where frames in one piece are in memory, `(n,)`, 0 for the others, and what keeps that memory."""
        found = np.zeros(len(rows), np.uint64)
        address = self.contiguous(rows)
        there = np.flatnonzero(address >= 0)
        found[there], owner = self._store.pointers(address[there], self.size.values[rows[there]].astype(np.int64))
        return found, owner

    def pieces(self, rows: Int64) -> tuple[FramePieces, Int64]:
        """Where in memory the pieces of frames in pieces are; and the sizes of these frames, `(n,)`, 0 for one that is
        not whole, which has no piece."""
        first, counts = self._piece_counts(rows)
        of = np.repeat(np.arange(len(rows)), counts)
        pieces = np.arange(len(of)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        addresses, sizes = self._piece_address.values[pieces], self._piece_size.values[pieces]
        there = addresses != NOWHERE
        pointers = np.zeros(len(addresses), np.uint64)
        pointers[there], owner = self._store.pointers(addresses[there], sizes[there])
        whole = np.zeros(len(rows), np.int64)
        np.add.at(whole, of[pointers > 0], sizes[pointers > 0])
        whole[whole != self.size.values[rows]] = 0
        some = whole[of] > 0
        kept = np.where(whole > 0, counts, 0)
        stop = np.cumsum(kept)
        return FramePieces(pointers[some], sizes[some], stop - kept, stop, owner), whole

    def joined(self, rows: Int64) -> tuple[UInt8, Int64]:
        """Copies of frames in pieces, one behind the other, and their sizes, `(n,)`, 0 for one that is not whole."""
        pieces, whole = self.pieces(rows)
        return join(pieces.addresses, pieces.sizes), whole

    def _piece_counts(self, rows: Int64) -> tuple[Int64, Int64]:
        """The first pieces of frames in pieces, and how many each has, `(n,)`."""
        first = self._first_piece.values[-2 - self._address.values[rows]]
        if not len(rows):
            return first, first
        low, high = int(first.min()), self._piece_rows(int(rows[first.argmax()])).stop
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._piece_size.values[low:high])])
        begin = first - low
        stop = np.searchsorted(ends, ends[begin] + self.size.values[rows])
        return first, np.clip(stop, begin + 1, high - low) - begin

    def _piece_rows(self, row: int) -> slice:
        """Where the pieces of a frame in pieces are."""
        first, size = self._first_piece_of(row), int(self.size.values[row])
        count = size // max(1, int(self._piece_size.values[first])) + PIECES_TOGETHER
        while True:
            ends = np.cumsum(self._piece_size.values[first : first + count])
            if len(ends) < count or ends[-1] >= size:
                return slice(first, first + min(int(np.searchsorted(ends, size)) + 1, len(ends)))
            count *= 4

    def _first_piece_of(self, row: int) -> int:
        """The row of the first piece of a frame in pieces."""
        return int(self._first_piece.values[-2 - int(self._address.values[row])])

    def _pieces(self, row: int) -> Iterator[tuple[int, int]]:
        """Addresses and sizes, a few at a time: reading the beginning of a frame does not cost its rest."""
        address, size = int(self._address.values[row]), int(self.size.values[row])
        if address >= NOWHERE:
            yield address, size
            return
        at = self._first_piece_of(row)
        while size > 0:
            some = slice(at, at + PIECES_TOGETHER)
            at += PIECES_TOGETHER
            for piece in zip(
                self._piece_address.values[some].tolist(), self._piece_size.values[some].tolist(), strict=True
            ):
                yield piece
                size -= piece[1]
                if size <= 0:
                    return

    def retain(self, rows: Int64, looked_back: Int64) -> None:
        """Get ready for a checkpoint that has only these rows, ascending, and the others in `looked_back` without their
        bytes. Row numbers stay."""
        self._kept, self._first = rows, len(self)
        for column in (self.direction, self.start, self.size, self.time_ns, self.packet, self.is_cut, self.is_alone):
            column.keep(np.union1d(rows, looked_back))
        self._last.values[:] = -1
        self._last.values[self.direction.values[rows]] = rows
        self._address.keep(rows)
        in_pieces = rows[self._address.values[rows] < NOWHERE]
        pieces = [self._first_piece_of(row) + np.arange(len(list(self._pieces(row)))) for row in in_pieces.tolist()]
        looked_up = np.unique(-2 - self._address.values[in_pieces])
        self._first_piece.keep(looked_up)
        self._transfer_ns.keep(looked_up)
        for column in (self._piece_address, self._piece_size):
            column.keep(np.concatenate([np.zeros(0, np.int64), *pieces]))

    def regions(self, rows: Int64) -> Int64:
        """Return addresses and sizes of the captured bytes of these frames, `(2, n)`."""
        address = self._address.values[rows]
        pieces = [piece for row in rows[address < NOWHERE].tolist() for piece in self._pieces(row)]
        whole = np.stack([address, self.size.values[rows].astype(np.int64)])[:, address >= 0]
        parts = np.array(pieces, np.int64).reshape(-1, 2).T
        return np.concatenate([whole, parts[:, parts[0] >= 0]], axis=1)

    def is_last(self, row: int) -> bool:
        """Whether no later frame has the direction of this one."""
        last = int(self._last.values[self.direction.values[row]])
        return bool(self.start.values[last] <= self.start.values[row])

    def ends_short(self, rows: Int64) -> Bool:
        """Return which of these frames lack bytes and are the last of their direction."""
        there = np.concatenate([self._kept, np.arange(self._first, len(self))])
        if not len(there):
            return np.zeros(len(rows), np.bool_)
        direction = self.direction.values[there]
        furthest = np.full(int(direction.max()) + 1, -1)
        np.maximum.at(furthest, direction, self.start.values[there])
        last = self.start.values[rows] >= furthest[self.direction.values[rows]]
        last[last] = [self.captured(row) < int(self.size.values[row]) for row in rows[last].tolist()]
        return last

    def costs(self, rows: Int64) -> Int64:
        """Return how many bytes it takes to read these frames, `(n,)`: of large ones those that were captured, as
        damage makes sizes that nothing has."""
        sizes = self.size.values[rows].astype(np.int64)
        large = np.flatnonzero((sizes >= JOINED) & (self._address.values[rows] < NOWHERE))
        for at, row in zip(large.tolist(), rows[large].tolist(), strict=True):
            pieces = self._piece_rows(row)
            sizes[at] = self._piece_size.values[pieces][self._piece_address.values[pieces] != NOWHERE].sum()
        return sizes

    def captured(self, row: int) -> int:
        """Return how many bytes of a frame were captured."""
        return sum(size for address, size in self._pieces(row) if address != NOWHERE)

    def read(self, row: int, limit: int | None = None) -> tuple[bytes, int]:
        """Return a frame's captured bytes, at most `limit`, and how many of them come before the first gap."""
        if limit is None and self.size.values[row] >= JOINED and self._address.values[row] < NOWHERE:
            memory, whole_sizes = self.joined(np.array([row], np.int64))
            if whole_sizes[0]:
                return memory.tobytes(), len(memory)
        parts: list[memoryview] = []
        whole: int | None = None
        room = limit if limit is not None else 1 << 62
        have = 0
        for address, size in self._pieces(row):
            if room <= 0:
                break
            if address == NOWHERE:
                whole = have if whole is None else whole
                continue
            wanted = min(size, room)
            part = self._store.read_intact(address, wanted)
            parts.append(part)
            have += len(part)
            if len(part) < wanted:
                break
            room -= len(part)
        data = b"".join(parts)
        return data, len(data) if whole is None else whole


def equal_numbers(frames: FrameTable, rows: Int64, start: int, head: int = 0) -> Int64:
    """Return a number for each frame of the table, by its bytes from offset `start` on and its first `head` bytes,
    `(n,)`."""
    found = np.full(len(rows), NO_NUMBER, np.int64)
    sizes = frames.size.values[rows].astype(np.int64)
    short = np.flatnonzero((sizes > start) & (sizes <= LONGEST))
    firsts: list[Int64] = []
    count = 0
    for step in np.split(short, cuts(sizes[short], COPIED_TOGETHER)):
        addresses, _owner = frames.pointers(rows[step])
        in_pieces = np.flatnonzero(frames.contiguous(rows[step]) < NOWHERE)
        if len(in_pieces):
            memory, whole = frames.joined(rows[step[in_pieces]])
            starts = np.where(whole > 0, memory.ctypes.data + np.cumsum(whole) - whole, 0)
            addresses[in_pieces] = starts.astype(np.uint64)
        some = step[addresses > 0]
        pieces = addresses[addresses > 0][:, None] + np.array([0, start], np.uint64)
        lengths = np.stack([np.full(len(some), head), sizes[some] - start], axis=1)
        copied = join(pieces.ravel(), lengths.ravel())
        numbers, first = numbered(copied, np.cumsum(lengths.sum(axis=1)), np.zeros(len(some), np.uint8))
        found[some] = count + numbers
        firsts.append(some[first])
        count += len(first)
    if len(firsts) > 1 and 2 * count <= len(short):  # half of them or fewer are different: are these?
        is_numbered = found != NO_NUMBER
        of_different = equal_numbers(frames, rows[np.concatenate(firsts)], start, head)
        found[is_numbered] = of_different[found[is_numbered]]
    return found
