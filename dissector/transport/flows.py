"""Connections: 4-tuples of a capture, numbered; a 4-tuple used again is another connection.

Invariants:
  * endpoints are kept whole, never hashed to something that can collide;
  * side 0 of a connection sent its first packet in the capture;
  * a SYN opens a new connection if it does not repeat the initial sequence number (ISN) of the one that is there;
    so does a SYN|ACK of a side whose ISN is known to be another one: the SYN before it is not in the capture.
"""

from ipaddress import IPv6Address
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.columns import Column
from dissector.transport.view import Ints

FIN: Final = 1
SYN: Final = 2
RST: Final = 4
ACK: Final = 16
UNKNOWN: Final = -1

Addresses = npt.NDArray[np.uint8]
_KEY = np.dtype([("address", "V16"), ("port", ">u2")])


class Flows:
    """All connections seen."""

    def __init__(self) -> None:
        self._endpoint_numbers: dict[bytes, int] = {}
        self._endpoints: list[bytes] = []
        self._current: dict[int, int] = {}
        """The newest connection of each pair of endpoints."""
        self._first = Column(np.int32)
        """Endpoint of side 0."""
        self._second = Column(np.int32)
        self._packet = Column(np.int64)
        self._time_ns = Column(np.int64)
        self._syn_side = Column(np.int8, UNKNOWN)
        self._isn = Column(np.int64, UNKNOWN)
        """Initial sequence number, by direction."""
        self._flags = Column(np.uint8)
        """FIN and RST seen, by direction."""

    def __len__(self) -> int:
        return len(self._packet)

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and of side 1."""
        return (
            _text(self._endpoints[self._first.values[connection]]),
            _text(self._endpoints[self._second.values[connection]]),
        )

    def ports(self, connection: int) -> tuple[int, int]:
        """The port of side 0 and of side 1."""
        ends = self._first.values[connection], self._second.values[connection]
        first, second = (int.from_bytes(self._endpoints[end][16:18], "big") for end in ends)
        return first, second

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""
        return int(self._syn_side.values[connection])

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""
        return int(self._packet.values[connection])

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""
        return int(self._time_ns.values[connection])

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags `FIN` and `RST` side 0 and side 1 have sent."""
        return int(self._flags.values[2 * connection]), int(self._flags.values[2 * connection + 1])

    def directions(
        self, source: tuple[Addresses, Ints], destination: tuple[Addresses, Ints],
        flags: Ints, seq: Ints, ack: Ints, packet: Ints, time_ns: Ints,
    ) -> Ints:  # fmt: skip
        """The direction of each segment; connections that are new are entered."""
        count = len(packet)
        keys = np.zeros(2 * count, _KEY)
        keys["address"] = np.concatenate([source[0], destination[0]]).view("V16").reshape(-1)
        keys["port"] = np.concatenate([source[1], destination[1]])
        ends = self._numbers(keys)
        sender, receiver = ends[:count], ends[count:]
        pair = (np.minimum(sender, receiver) << 32) | np.maximum(sender, receiver)
        pairs, firsts, inverse = np.unique(pair, return_index=True, return_inverse=True)
        for position in np.argsort(firsts).tolist():
            if int(pairs[position]) not in self._current:
                self._enter(int(pairs[position]), int(firsts[position]), sender, receiver, packet, time_ns)
        connection = np.array([self._current[p] for p in pairs.tolist()], np.int64)[inverse]
        connection = self._openings(connection, pair, (sender, receiver, flags, seq, ack, packet, time_ns))
        direction: Ints = 2 * connection + (sender != self._first.values[connection])
        last = np.flatnonzero((flags & (FIN | RST)) != 0)
        np.bitwise_or.at(self._flags.values, direction[last], (flags[last] & (FIN | RST)).astype(np.uint8))
        return direction

    def _numbers(self, keys: npt.NDArray[np.void]) -> Ints:
        """The number of each endpoint. Few differ, so each is looked up once."""
        words = keys.view(np.uint8).reshape(-1, _KEY.itemsize)
        halves = np.zeros((len(keys), 24), np.uint8)
        halves[:, : _KEY.itemsize] = words
        wide = halves.view(np.uint64)
        # Sorting three columns is slow; a mixed word groups equal rows, and the groups are then checked to be equal.
        mixed = wide[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ wide[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F) ^ wide[:, 2]
        _, index, inverse = np.unique(mixed, return_index=True, return_inverse=True)
        if not (wide[index[inverse]] == wide).all():
            _, index, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
            inverse = inverse.reshape(-1)
        return np.array([self._number(words[row].tobytes()) for row in index.tolist()], np.int64)[inverse]

    def _number(self, endpoint: bytes) -> int:
        number = self._endpoint_numbers.setdefault(endpoint, len(self._endpoints))
        if number == len(self._endpoints):
            self._endpoints.append(endpoint)
        return number

    def _enter(self, pair: int, row: int, sender: Ints, receiver: Ints, packet: Ints, time_ns: Ints) -> int:
        number = self._current[pair] = len(self)
        self._first.extend([sender[row]])
        self._second.extend([receiver[row]])
        self._packet.extend([packet[row]])
        self._time_ns.extend([time_ns[row]])
        self._syn_side.extend([UNKNOWN])
        self._isn.grow(2 * len(self))
        self._flags.grow(2 * len(self))
        return number

    def _openings(self, connection: Ints, pair: Ints, columns: tuple[Ints, ...]) -> Ints:
        """Look at the few segments with SYN: who opened, and whether it is another connection from there on."""
        sender, receiver, flags, seq, ack, packet, time_ns = columns
        opened: list[int] = []
        numbers: list[int] = []
        for row in np.flatnonzero((flags & (SYN | RST)) == SYN).tolist():
            number = self._current[int(pair[row])]
            isn, answered = int(seq[row]), _before(int(ack[row])) if flags[row] & ACK else UNKNOWN
            side = int(sender[row] != self._first.values[number])
            if self._is_another(number, side, isn, answered, int(packet[row])):
                number = self._enter(int(pair[row]), row, sender, receiver, packet, time_ns)
                opened.append(row)
                numbers.append(number)
                side = 0
            self._note_opening(number, side, isn, answered)
        return _from_there_on(connection, pair, opened, numbers) if opened else connection

    def _is_another(self, number: int, side: int, isn: int, answered: int, packet: int) -> bool:
        """Whether a SYN is not that of the connection that is there."""
        mine = self._isn.values[2 * number + side]
        if mine != UNKNOWN:
            return bool(mine != isn)
        return answered == UNKNOWN and packet != self.first_packet(number)

    def _note_opening(self, number: int, side: int, isn: int, answered: int) -> None:
        of_side, of_peer = 2 * number + side, 2 * number + 1 - side
        if answered != UNKNOWN and self._isn.values[of_peer] not in (UNKNOWN, answered):
            return  # the answer to an attempt that is over
        self._isn.values[of_side] = isn
        if answered != UNKNOWN:
            self._isn.values[of_peer] = answered
        if self._syn_side.values[number] == UNKNOWN:
            self._syn_side.values[number] = side if answered == UNKNOWN else 1 - side


def _before(ack: int) -> int:
    """The sequence number that a SYN|ACK acknowledges."""
    return (ack - 1) & 0xFFFFFFFF


def _from_there_on(connection: Ints, pair: Ints, opened: list[int], numbers: list[int]) -> Ints:
    """Each row's connection, where the rows `opened` begin new ones between their endpoints."""
    order = np.argsort(pair, kind="stable")
    begins = np.zeros(len(pair), np.bool_)
    begins[opened] = True
    number = connection.copy()
    number[opened] = numbers
    begins, pairs = begins[order], pair[order]
    begins |= np.diff(pairs, prepend=pairs[0] - 1) != 0
    source = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    result = np.empty_like(connection)
    result[order] = number[order][source]
    return result


def _text(endpoint: bytes) -> tuple[str, int]:
    """Address and port for people."""
    address = IPv6Address(endpoint[:16])
    port = int.from_bytes(endpoint[16:18], "big")
    return str(address.ipv4_mapped or address), port
