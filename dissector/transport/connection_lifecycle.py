"""How connections begin and end: initial sequence numbers (ISN), the side that opened, FIN and RST.

A pair of endpoints has many connections, one after the other. The next one begins
  * with a SYN that does not repeat the ISN of its side, or with a SYN|ACK of a side whose known ISN differs: the SYN
    before it was not captured. But both sides may open one connection at once (RFC 9293, 3.5), and a SYN right before
    the first bytes that were captured is theirs: the capture has it out of order;
  * after the end (an RST, or a FIN of each side), with bytes whose sequence number is far from where that side ended:
    the handshake was not captured. Bytes near it are late, or sent again.

`ConnectionLifecycle` implements these rules twice: in columns (`record`), where most pairs do nothing unusual, and row
by row (`record_row`) for the others.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import Column, unique

FIN: Final = 1
SYN: Final = 2
RST: Final = 4
ACK: Final = 16
UNKNOWN: Final = -1
OPEN: Final = 1 << 62
"""`end_packet` of a connection that has not ended."""
NEAR: Final = 1 << 24
"""Distance from the end of a side, in bytes, up to which later bytes are of the same connection."""
LATE_SYN: Final = 1 << 16
"""Distance in bytes from a SYN to the first bytes captured of its side, up to which both are of one connection."""
_MASK: Final = 0xFFFFFFFF
_HALF: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Columns of segments."""

    entry: Int64
    """Of the pair."""
    higher: Bool
    """Whether the sender is the higher end of the pair."""
    flags: Int64
    seq: Int64
    ack: Int64
    size: Int64
    """Payload bytes, with those cut off by the snap length."""
    packet: Int64
    time_ns: Int64

    def __len__(self) -> int:
        return len(self.packet)


class ConnectionLifecycle:
    """Columns by connection, and by direction (`2 * connection + side`)."""

    def __init__(self) -> None:
        self.syn_side = Column(np.int8, UNKNOWN)
        self.end_packet = Column(np.int64, OPEN)
        """The packet with which each ended, or `OPEN`."""
        self.flags = Column(np.uint8)
        """FIN and RST captured, by direction."""
        self._isn = Column(np.int64, UNKNOWN)
        self._first = Column(np.int64, UNKNOWN)
        """By direction: the sequence number of the connection's first row, or the one that it acknowledges."""
        self._end = Column(np.int64, UNKNOWN)
        """By direction: the sequence number after the FIN or the RST, or after what came later."""

    def grow(self, connections: int) -> None:
        """Make room for this many connections."""
        self.syn_side.grow(connections)
        self.end_packet.grow(connections)
        for column in (self.flags, self._isn, self._first, self._end):
            column.grow(2 * connections)

    def put_in_order(self, before: int, order: Int64) -> None:
        """Renumber the connections from `before` on: `order` has their old numbers, counted from there."""
        for column in (self.syn_side, self.end_packet):
            column.values[before:] = column.values[before:][order]
        for column in (self.flags, self._isn, self._first, self._end):
            rows = column.values[2 * before :].reshape(-1, 2)
            rows[:] = rows[order]

    def unreachable(self) -> tuple[Int64, Int64]:
        """Return connections whose opener got an RST and no SYN, and those whose opener got nothing and sent no FIN."""
        opened = np.flatnonzero(self.syn_side.values != UNKNOWN)
        of_opener = 2 * opened + self.syn_side.values[opened]
        of_peer = of_opener ^ 1
        nothing = self._isn.values[of_peer] == UNKNOWN
        refused = nothing & (self.flags.values[of_peer] & RST != 0)
        # An opener of which more than the SYN was captured had an answer: the capture has one direction.
        only_syn = self._end.values[of_opener] == UNKNOWN
        return opened[refused], opened[nothing & ~refused & only_syn & (self._end.values[of_peer] == UNKNOWN)]

    def answered(self) -> Int64:
        """Return connections whose opener got a SYN."""
        opened = np.flatnonzero(self.syn_side.values != UNKNOWN)
        answered: Int64 = opened[self._isn.values[2 * opened + 1 - self.syn_side.values[opened]] != UNKNOWN]
        return answered

    # Row by row.

    def begins_another(self, number: int, side: int, row: tuple[int, ...], *, first: bool) -> bool:
        """Whether a row (flags, seq, ack, size, packet) begins another connection.

        `first`: it is the first row of this one."""
        flags, seq, _, size, packet = row
        direction = 2 * number + side
        if flags & (SYN | RST) == SYN:
            mine = int(self._isn.values[direction])
            if mine != UNKNOWN:
                return mine != seq
            if _is_right_before(seq, int(self._first.values[direction])):
                return False
            both_open = self._isn.values[direction ^ 1] != UNKNOWN and self.end_packet.values[number] == OPEN
            return not flags & ACK and not first and not both_open
        late = size > 0 and packet > self.end_packet.values[number]
        return late and not _near(int(self._end.values[direction]), seq)

    def record_row(self, number: int, side: int, row: tuple[int, ...]) -> None:
        """Record one row of this connection."""
        flags, seq, ack, size, packet = row
        direction = 2 * number + side
        if self._first.values[direction] == self._first.values[direction ^ 1] == UNKNOWN:
            self._first.values[direction], self._first.values[direction ^ 1] = seq, ack if flags & ACK else UNKNOWN
        if flags & (SYN | RST) == SYN:
            self._record_opening(number, side, seq, (ack - 1) & _MASK if flags & ACK else UNKNOWN)
        if flags & (FIN | RST):
            self.flags.values[direction] |= flags & (FIN | RST)
            end_packet = flags & RST or self.flags.values[direction] & self.flags.values[direction ^ 1] & FIN
            if end_packet and self.end_packet.values[number] == OPEN:
                self.end_packet.values[number] = packet
        elif not size or packet <= self.end_packet.values[number]:
            return
        self._end.values[direction] = (seq + size + (flags & FIN)) & _MASK

    def _record_opening(self, number: int, side: int, isn: int, acknowledged_isn: int) -> None:
        of_side, of_peer = 2 * number + side, 2 * number + 1 - side
        if acknowledged_isn != UNKNOWN and self._isn.values[of_peer] not in (UNKNOWN, acknowledged_isn):
            return  # answers an earlier attempt
        self._isn.values[of_side] = isn
        if acknowledged_isn != UNKNOWN:
            self._isn.values[of_peer] = acknowledged_isn
        if self.syn_side.values[number] == UNKNOWN:
            self.syn_side.values[number] = side if acknowledged_isn == UNKNOWN else 1 - side

    # As columns.

    def record(self, rows: SegmentRows, connection: Int64, direction: Int64, first: Bool) -> Int64:
        """Record the rows of pairs that do nothing unusual; return the entries of the others, of which nothing is
        recorded. `first` marks the first rows of new pairs."""
        openings = _Openings(rows, first)
        endings = _Endings(self, rows, connection, direction)
        unusual = unique(np.concatenate([openings.unusual, endings.unusual]))
        self._record_first(rows, direction, first & ~np.isin(rows.entry, unusual))
        self._record_openings(rows, direction, openings, unusual)
        endings.record(unusual)
        return unusual

    def _record_openings(self, rows: SegmentRows, direction: Int64, openings: "_Openings", unusual: Int64) -> None:
        usual = openings.rows[~np.isin(rows.entry[openings.rows], unusual)]
        side = direction[usual]
        answers = (rows.flags[usual] & ACK) != 0
        self._isn.values[side] = rows.seq[usual]
        self._isn.values[side[answers] ^ 1] = (rows.ack[usual][answers] - 1) & _MASK
        self.syn_side.values[side >> 1] = (side & 1) ^ answers

    def _record_first(self, rows: SegmentRows, direction: Int64, first: Bool) -> None:
        acknowledges = (rows.flags[first] & ACK) != 0
        self._first.values[direction[first]] = rows.seq[first]
        self._first.values[direction[first] ^ 1] = np.where(acknowledges, rows.ack[first], UNKNOWN)

    def ends(self) -> Column:
        """The sequence number at which each side ended, by direction."""
        return self._end


class _Openings:
    """SYNs. Usual are a pair's first row and the answer to it, and each of them repeated at once."""

    def __init__(self, rows: SegmentRows, first: Bool) -> None:
        syn = np.flatnonzero((rows.flags & (SYN | RST)) == SYN)
        syn = syn[np.argsort(rows.entry[syn], kind="stable")]
        entry = rows.entry[syn]
        columns = [column[syn] for column in (rows.entry, rows.higher, rows.flags & ACK, rows.seq, rows.ack)]
        repeats = np.logical_and.reduce([_as_before(column) for column in columns])
        syn, entry = syn[~repeats], entry[~repeats]
        opens = first[syn]
        answers = np.zeros(len(syn), np.bool_)
        answers[1:] = opens[:-1] & (entry[1:] == entry[:-1]) & (rows.higher[syn[1:]] != rows.higher[syn[:-1]])
        answers[1:] &= ((rows.flags[syn[:-1]] & ACK) == 0) & ((rows.flags[syn[1:]] & ACK) != 0)
        answers[1:] &= ((rows.ack[syn[1:]] - 1) & _MASK) == rows.seq[syn[:-1]]
        self.rows: Int64 = syn
        self.unusual: Int64 = unique(entry[~(opens | answers)])


class _Endings:
    """FINs, RSTs, and bytes after the end. Usual are bytes near it."""

    def __init__(self, lifecycle: ConnectionLifecycle, rows: SegmentRows, connection: Int64, direction: Int64) -> None:
        self._lifecycle = lifecycle
        self._entry = rows.entry
        self._direction = direction
        self._closing = np.flatnonzero((rows.flags & (FIN | RST)) != 0)
        self._flags = rows.flags[self._closing] & (FIN | RST)
        self._numbers, self._end_packets = self._when(connection, rows.packet)
        end_packet = lifecycle.end_packet.values[connection]
        if len(self._numbers):
            at = np.minimum(np.searchsorted(self._numbers, connection), len(self._numbers) - 1)
            end_packet = np.where(self._numbers[at] == connection, self._end_packets[at], end_packet)
        late = np.flatnonzero((rows.size > 0) & (rows.packet > end_packet))
        marks = unique(np.concatenate([self._closing, late]))
        self._marks = marks = marks[np.argsort(direction[marks], kind="stable")]
        self._ends = (rows.seq[marks] + rows.size[marks] + (rows.flags[marks] & FIN)) & _MASK
        before = np.empty_like(self._ends)
        before[1:] = self._ends[:-1]
        firsts = np.diff(direction[marks], prepend=-1) != 0
        before[firsts] = lifecycle.ends().values[direction[marks[firsts]]]
        far = np.isin(marks, late) & (rows.flags[marks] & (SYN | RST) != SYN) & ~_near_all(before, rows.seq[marks])
        self.unusual: Int64 = unique(rows.entry[marks[far]])

    def _when(self, connection: Int64, packet: Int64) -> tuple[Int64, Int64]:
        """The connections that close, and the packets with which they end."""
        numbers, which = np.unique(connection[self._closing], return_inverse=True)
        side = self._direction[self._closing] & 1
        when = packet[self._closing]
        seen = self._lifecycle.flags.values
        fin = np.full((len(numbers), 2), OPEN, np.int64)
        for of in (0, 1):
            fin[(seen[2 * numbers + of] & FIN) != 0, of] = UNKNOWN
        rst = self._lifecycle.end_packet.values[numbers]
        ends, resets = (self._flags & FIN) != 0, (self._flags & RST) != 0
        np.minimum.at(fin, (which[ends], side[ends]), when[ends])
        np.minimum.at(rst, which[resets], when[resets])
        both = fin.max(axis=1)
        return numbers, np.minimum(rst, np.where(both == UNKNOWN, OPEN, both))

    def record(self, unusual: Int64) -> None:
        """Record those of pairs that are not `unusual`."""
        lifecycle, direction = self._lifecycle, self._direction
        closing = ~np.isin(self._entry[self._closing], unusual)
        of = direction[self._closing[closing]]
        np.bitwise_or.at(lifecycle.flags.values, of, self._flags[closing].astype(np.uint8))
        usual = np.isin(self._numbers, of >> 1)
        lifecycle.end_packet.values[self._numbers[usual]] = self._end_packets[usual]
        marks = ~np.isin(self._entry[self._marks], unusual)
        lifecycle.ends().values[direction[self._marks[marks]]] = self._ends[marks]


def _as_before(column: npt.NDArray[np.generic]) -> Bool:
    same = np.zeros(len(column), np.bool_)
    same[1:] = column[1:] == column[:-1]
    return same


def _is_right_before(isn: int, first: int) -> bool:
    return first != UNKNOWN and 0 < ((first - isn) & _MASK) <= LATE_SYN


def _near(end: int, seq: int) -> bool:
    return end == UNKNOWN or abs(((seq - end + _HALF) & _MASK) - _HALF) <= NEAR


def _near_all(end: Int64, seq: Int64) -> Bool:
    near: Bool = (end == UNKNOWN) | (np.abs(((seq - end + _HALF) & _MASK) - _HALF) <= NEAR)
    return near
