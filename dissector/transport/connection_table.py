"""The table of connections: 4-tuples of a capture, numbered. A 4-tuple used again is another connection.

Invariants:
  * endpoints are compared whole, never by a hash that can collide;
  * side 0 of a connection sent its first packet in the capture;
  * the lookup table grows with the connections that are open, not with those seen: connections that ended are evicted
    some packets later, and so are those idle for longest where too many are open. This happens at packets that are
    multiples of `limits.remembered_packets`, so batches make no difference. Columns of evicted connections stay.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv6Address
from itertools import pairwise
from sys import byteorder
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.batches import NEVER
from dissector.core.columns import Column, distinct
from dissector.core.limits import Limits
from dissector.transport.connection_lifecycle import ACK, FIN, RST, SYN, ConnectionLifecycle, SegmentRows
from dissector.transport.endpoint_index import WORDS, EndpointIndex

__all__ = ["ACK", "FIN", "RST", "SYN", "ConnectionTable"]

_EVICTED: Final = 1 << 20
"""Open pairs that were evicted, of which hashes are kept to count those that come again."""


class ConnectionTable:
    """All connections of a capture."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pairs = EndpointIndex()
        self._lifecycle = ConnectionLifecycle()
        self._key = Column(f"V{8 * WORDS}")
        """Both ends, as in `EndpointIndex`."""
        self._higher = Column(np.bool_)
        """Whether side 0 is the higher end of the pair."""
        self._packet = Column(np.int64)
        self._time_ns = Column(np.int64)
        self._closed_ns = Column(np.int64, NEVER)
        self._closed_by = Column(np.int8)
        self._period = 0
        self._closed: list[Int64] = []
        self._evicted: UInt64 = np.zeros(0, np.uint64)
        """Hashes of the pairs that were evicted while they were open, newest last."""
        self.resumed = 0
        """Connections that were evicted while they were open, and then continued as new ones."""

    def __len__(self) -> int:
        return len(self._packet)

    @property
    def known(self) -> int:
        """Pairs of endpoints in the lookup table."""
        return len(self._pairs)

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and of side 1."""
        key = self._key.values[connection].tobytes()
        ports = int.from_bytes(key[32:40], byteorder)
        low, high = (_text(key[:16]), ports >> 16), (_text(key[16:32]), ports & 0xFFFF)
        return (high, low) if self._higher.item(connection) else (low, high)

    def ports(self, connection: int) -> tuple[int, int]:
        """The port of side 0 and of side 1."""
        ports = int(np.frombuffer(self._key.values[connection].tobytes(), np.uint64)[4])
        low, high = ports >> 16, ports & 0xFFFF
        return (high, low) if self._higher.item(connection) else (low, high)

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""
        return self._lifecycle.syn_side.item(connection)

    def syn_sides(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""
        return self._lifecycle.syn_side.values[connections]

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""
        return self._packet.item(connection)

    def first_packets(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""
        return self._packet.values[connections]

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""
        return self._time_ns.item(connection)

    def first_times_ns(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""
        return self._time_ns.values[connections]

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags `FIN` and `RST` side 0 and side 1 have sent."""
        flags = self._lifecycle.flags.values
        return int(flags[2 * connection]), int(flags[2 * connection + 1])

    def closed(self, connection: int) -> tuple[int, int]:
        """The time of its first FIN or RST, `NEVER` where none was seen; and the side that sent it."""
        return self._closed_ns.item(connection), self._closed_by.item(connection)

    def are_closed(self, connections: Int64) -> Bool:
        """Return of which connections a FIN or RST was seen, `(n,)`."""
        seen: Bool = self._closed_ns.values[connections] != NEVER
        return seen

    def open(self) -> Int64:
        """Connections of which more may come, ascending."""
        return np.sort(self._pairs.connection)

    def unreachable(self) -> tuple[Int64, Int64]:
        """Return connections that were refused, and those whose opener got no answer, ascending."""
        return self._lifecycle.unreachable()

    def answered(self) -> Int64:
        """Return connections whose opener got a SYN, ascending."""
        return self._lifecycle.answered()

    def servers(self, connections: Int64) -> tuple[list[tuple[str, int]], Int64]:
        """Return address and port of each server of connections whose SYN was captured, as `ends`."""
        return self.ends(connections, 1 - self._lifecycle.syn_side.values[connections])

    def ends(self, connections: Int64, sides: Int64) -> tuple[list[tuple[str, int]], Int64]:
        """Return address and port of each different end that is one side of connections, in the order in which they
        come; and for every connection which of them is its own."""
        if not len(connections):
            return [], connections
        ends = self._ends(connections, sides)
        firsts, which = distinct(ends)
        return [(_text(each[:2].tobytes()), int(each[2])) for each in ends[firsts]], which

    def routes(self, connections: Int64, clients: Int64) -> Int64:
        """Number the different pairs of a client's address, whatever its port is, and a server's end, from 0; return
        the number of each connection's, `(n,)`. `clients` are the sides of the clients."""
        if not len(connections):
            return connections
        pairs = np.column_stack([self._ends(connections, clients)[:, :2], self._ends(connections, 1 - clients)])
        return distinct(pairs)[1]

    def _ends(self, connections: Int64, sides: Int64) -> UInt64:
        """The address, two words, and the port of one side of each connection, `(n, 3)`."""
        words = self._key.values[connections].view(np.uint64).reshape(-1, WORDS)
        is_higher = self._higher.values[connections] == (sides == 0)
        address = np.where(is_higher[:, None], words[:, 2:4], words[:, :2])
        port = np.where(is_higher, words[:, 4] & np.uint64(0xFFFF), words[:, 4] >> np.uint64(16))
        return np.column_stack([address, port])

    def take_closed(self) -> Int64:
        """Return connections that closed since the last call: evicted, or replaced by another of the same endpoints."""
        closed = np.concatenate([np.zeros(0, np.int64), *self._closed])
        self._closed.clear()
        return closed

    def directions(
        self, keys: UInt64, higher: Bool, flags: Int64, seq: Int64, ack: Int64, size: Int64,
        packet: Int64, time_ns: Int64,
    ) -> Int64:  # fmt: skip
        """Return the direction of each segment; add new connections. `keys` are those of the pairs of endpoints;
        `higher`: the sender is the higher end; `size` is that of the payload."""
        direction = np.empty(len(packet), np.int64)
        for part in self._periods(packet):
            columns = [column[part] for column in (flags, seq, ack, size, packet, time_ns)]
            direction[part] = self._part(keys[part], higher[part], *columns)
        self._record_closing(np.flatnonzero(flags & (FIN | RST)), direction, time_ns)
        return direction

    def _record_closing(self, rows: Int64, direction: Int64, time_ns: Int64) -> None:
        """Record the first FIN or RST of each connection."""
        rows = rows[self._closed_ns.values[direction[rows] >> 1] == NEVER][
            ::-1
        ]  # numpy assigns the last of equal indices
        connection = direction[rows] >> 1
        self._closed_ns.values[connection] = time_ns[rows]
        self._closed_by.values[connection] = direction[rows] & 1

    def _periods(self, packet: Int64) -> Iterator[slice]:
        """Rows between two evictions; evicts connections on the way."""
        period = packet // self._limits.remembered_packets
        cuts = [*np.flatnonzero(np.diff(period, prepend=-1)).tolist(), len(packet)]
        for low, high in pairwise(cuts):
            if period[low] > self._period:
                self._period = int(period[low])
                self._evict(self._period * self._limits.remembered_packets)
            yield slice(low, high)

    def _part(
        self, keys: UInt64, higher: Bool, flags: Int64, seq: Int64, ack: Int64, size: Int64,
        packet: Int64, time_ns: Int64,
    ) -> Int64:  # fmt: skip
        before = len(self)
        entry = self._pairs.find(keys)
        first = np.zeros(len(packet), np.bool_)
        unknown = np.flatnonzero(entry < 0)
        if len(unknown):
            firsts, which = distinct(keys[unknown])
            new = unknown[firsts]
            first[new] = True
            self._count_resumed(keys[new[(flags[new] & SYN) == 0]])
            numbers = self._enter(keys[new], higher[new], packet[new], time_ns[new])
            entry[unknown] = self._pairs.add(keys[new], numbers, packet[new])[which]
        self._pairs.last[entry] = packet
        rows = SegmentRows(entry, higher, flags, seq, ack, size, packet, time_ns)
        connection = self._pairs.connection[entry]
        direction: Int64 = 2 * connection + (higher != self._higher.values[connection])
        unusual = self._lifecycle.record(rows, connection, direction, first)
        if len(unusual):
            self._closed.append(self._one_by_one(rows, keys, direction, np.flatnonzero(np.isin(entry, unusual))))
            return self._renumber(before, direction)
        return direction

    def _enter(self, keys: UInt64, higher: Bool, packet: Int64, time_ns: Int64) -> Int64:
        """Add connections, the sender of their first packet at side 0; return their numbers. Other threads find them
        when all is there: by the last column."""
        numbers = np.arange(len(self), len(self) + len(packet))
        self._key.extend(keys.view(f"V{8 * WORDS}").reshape(-1))
        self._higher.extend(higher)
        self._time_ns.extend(time_ns)
        for column in (self._closed_ns, self._closed_by, self._lifecycle):
            column.grow(len(self) + len(packet))
        self._packet.extend(packet)
        return numbers

    def _one_by_one(self, rows: SegmentRows, keys: UInt64, direction: Int64, which: Int64) -> Int64:
        """Process rows of unusual pairs one by one: correct their `direction`, and return replaced connections."""
        replaced: list[int] = []
        lifecycle, current = self._lifecycle, self._pairs.connection
        columns = (rows.entry, rows.higher, rows.flags, rows.seq, rows.ack, rows.size, rows.packet)
        for at, entry, higher, *row in zip(
            which.tolist(), *(column[which].tolist() for column in columns), strict=True
        ):
            number = int(current[entry])
            side = int(higher != self._higher.values[number])
            values = tuple(row)
            if lifecycle.begins_another(number, side, values, first=values[-1] == self.first_packet(number)):
                one = slice(at, at + 1)
                replaced.append(number)
                [number] = self._enter(keys[one], rows.higher[one], rows.packet[one], rows.time_ns[one]).tolist()
                current[entry], side = number, 0
            lifecycle.record_row(number, side, values)
            direction[at] = 2 * number + side
        return np.array(replaced, np.int64)

    def _renumber(self, before: int, direction: Int64) -> Int64:
        """Renumber the connections from `before` on by their first packets; return the corrected directions."""
        order = np.argsort(self._packet.values[before:])
        if (np.diff(order) == 1).all():
            return direction
        number = np.arange(len(self))
        number[before + order] = np.arange(before, len(self))
        for column in (self._key, self._higher, self._packet, self._time_ns):
            column.values[before:] = column.values[before:][order]
        self._lifecycle.put_in_order(before, order)
        self._pairs.connection[:] = number[self._pairs.connection]
        self._closed[-1] = number[self._closed[-1]]
        renumbered: Int64 = 2 * number[direction >> 1] + (direction & 1)
        return renumbered

    def _evict(self, packet: int) -> None:
        """Evict connections that ended long enough before `packet`, and the surplus of open ones."""
        connection = self._pairs.connection
        stay = self._lifecycle.end_packet.values[connection] >= packet - self._limits.remembered_packets
        surplus = int(stay.sum()) - self._limits.connections
        if surplus > 0:
            staying = np.flatnonzero(stay)
            idle = staying[np.argsort(self._pairs.last[staying], kind="stable")[:surplus]]
            stay[idle] = False
            hashes = self._pairs.hashed(self._pairs.keys[idle])
            self._evicted = np.concatenate([self._evicted, hashes])[-_EVICTED:]
        if not stay.all():
            self._closed.append(connection[~stay])
            self._pairs.keep(stay)

    def _count_resumed(self, keys: UInt64) -> None:
        """Count those that were evicted while they were open."""
        if len(self._evicted) and len(keys):
            self.resumed += int(np.isin(self._pairs.hashed(keys), self._evicted).sum())


@lru_cache(maxsize=1024)
def _text(address: bytes) -> str:
    """An address for people."""
    whole = IPv6Address(address)
    return str(whole.ipv4_mapped or whole)
