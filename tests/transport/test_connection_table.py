"""Connections: who is who, and when the same endpoints are another connection."""

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partialmethod
from typing import Any

import numpy as np
import pytest

from dissector.core.batches import NEVER
from dissector.core.columns import Column
from dissector.transport.connection_lifecycle import LATE_SYN, NEAR
from dissector.transport.connection_table import ConnectionTable
from tests.cases import cases
from tests.traffic import ACK, CLIENT, FIN, PSH, RST, SERVER, SYN, Packet, Turn, conversation
from tests.transport.reading import read

FIRST = conversation([Turn(True, b"one"), Turn(False, b"two")])
SECOND = conversation([Turn(True, b"three"), Turn(False, b"four")], isn=(99_000, 77_000))


def test_endpoints_are_text_side_0_first() -> None:
    connections = read(FIRST).transport.connections
    assert len(connections) == 1
    assert connections.endpoints(0) == (CLIENT, SERVER)
    assert connections.syn_side(0) == 0
    assert connections.first_packet(0) == 0


def test_a_connection_that_another_thread_finds_is_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[ConnectionTable] = []
    looked = []

    def look(column: Column, *given: Any, change: Callable[..., None]) -> None:
        change(column, *given)
        for table in tables:  # as a thread that comes between two columns
            numbers = np.arange(len(table))
            looked.append(len(numbers))
            assert not table.are_closed(numbers).any()
            assert [table.closed(n)[0] for n in numbers.tolist()] == [NEVER] * len(numbers)
            assert table.syn_sides(numbers).shape == table.first_times_ns(numbers).shape == numbers.shape
            assert all(table.endpoints(n) for n in numbers.tolist())

    made = ConnectionTable.__init__
    monkeypatch.setattr(ConnectionTable, "__init__", lambda self, limits: (made(self, limits), tables.append(self))[0])
    for name in ("extend", "grow"):
        monkeypatch.setattr(Column, name, partialmethod(look, change=getattr(Column, name)))
    reading = read(FIRST[:4])
    assert max(looked) == len(reading.transport.connections) == 1


def test_ipv6_endpoints_are_compressed() -> None:
    source, destination = bytes(15) + b"\x01", bytes.fromhex("20010db8") + bytes(11) + b"\x05"
    tcp = struct.pack(">HHIIBBHHH", 5, 6, 1, 0, 0x50, SYN, 0, 0, 0)
    packet = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + source + destination + tcp
    assert read([packet], link_type=101).transport.connections.endpoints(0) == (("::1", 5), ("2001:db8::5", 6))


def test_the_side_that_opened_is_known_by_its_syn_or_by_the_answer() -> None:
    assert read(FIRST[1:]).transport.connections.syn_side(0) == 1
    assert read(FIRST[2:]).transport.connections.syn_side(0) == -1
    assert read([FIRST[1], FIRST[0], *FIRST[2:]]).transport.connections.syn_side(0) == 1


@cases("cuts", [[], [4], list(range(9))])
@cases("seen", [SECOND, SECOND[1:]], ids=["its SYN", "its SYN|ACK"])
def test_endpoints_used_again_are_another_connection(seen: list[Packet], cuts: list[int]) -> None:
    reading = read([*FIRST, *seen], cuts=cuts)
    connections = reading.transport.connections
    assert len(connections) == 2
    assert connections.first_packet(1) == len(FIRST)
    data_of = {
        connections.endpoints(direction // 2)[direction % 2]: data for direction, data in reading.streams.items()
    }
    assert data_of == {CLIENT: b"three", SERVER: b"four"}  # the later ones; the endpoints of both are known
    assert sorted(reading.streams.values()) == [b"four", b"one", b"three", b"two"]


def test_a_syn_after_a_beginning_in_the_middle_is_another_connection() -> None:
    assert len(read([*FIRST[2:], *SECOND]).transport.connections) == 2


def test_a_syn_that_is_repeated_or_late_is_not() -> None:
    assert len(read([FIRST[0], *FIRST, FIRST[0], FIRST[1]]).transport.connections) == 1
    assert len(read([FIRST[1], FIRST[0], *FIRST[2:]]).transport.connections) == 1


def test_many_connections_of_the_same_endpoints_in_one_batch_are_distinguished() -> None:
    packets = [
        packet
        for n in range(20)
        for port in (1, 2)
        for packet in conversation([Turn(True, bytes([n, port]))], isn=(n << 20, n << 21), client=("10.0.0.1", port))
    ]
    reading = read(packets)
    assert len(reading.transport.connections) == 40
    assert sorted(reading.streams.values()) == sorted(bytes([n, port]) for n in range(20) for port in (1, 2))


def test_how_each_side_ended_is_known() -> None:
    connections = read(
        [*FIRST, Packet(True, 1004, b"", FIN | ACK), Packet(False, 5004, b"", RST)]
    ).transport.connections
    assert connections.ended(0) == (FIN, RST)
    assert read(FIRST).transport.connections.ended(0) == (0, 0)


def test_a_refused_attempt_and_the_next_one_are_two_connections() -> None:
    refused = [FIRST[0], Packet(False, 0, b"", RST | ACK, FIRST[0].seq + 1)]
    connections = read([*refused, *SECOND]).transport.connections
    assert [connections.ended(number)[1] for number in range(len(connections))] == [RST, 0]


def test_a_reply_to_an_abandoned_attempt_changes_nothing() -> None:
    stale = replace(FIRST[1], seq=1, ack=123)
    reading = read([FIRST[0], stale, *FIRST[1:]])
    assert len(reading.transport.connections) == 1
    assert reading.transport.connections.syn_side(0) == 0


@cases(("distance", "connections"), [(1, 1), (LATE_SYN, 1), (LATE_SYN + 1, 2), (0, 2), (-1, 2)])
def test_a_syn_behind_bytes_is_theirs_if_it_is_right_before_them(distance: int, connections: int) -> None:
    data = Packet(True, 1000 + distance, b"one")
    reading = read([data, Packet(True, 1000, b"", SYN)])
    assert len(reading.transport.connections) == connections


@cases(("missing", "connections"), [(LATE_SYN - 1, 1), (LATE_SYN, 2)])
def test_bytes_right_behind_a_syn_that_comes_later_are_missing_at_the_beginning(missing: int, connections: int) -> None:
    late = [Packet(True, 1001 + missing, b"one"), Packet(True, 1000, b"", SYN)]
    reading = read(late)
    assert len(reading.transport.connections) == connections
    assert reading.streams[0] == (b"?" * missing if connections == 1 else b"") + b"one"


@cases(("missing", "known"), [(LATE_SYN, True), (LATE_SYN + 1, False)])
def test_an_answer_behind_bytes_tells_what_is_missing_before_them(missing: int, known: bool) -> None:
    reading = read([Packet(True, 1001 + missing, b"one"), Packet(False, 5000, b"", SYN | ACK, 1001)])
    assert reading.streams[0] == (b"?" * missing if known else b"") + b"one"


def test_bytes_are_late_up_to_a_distance_from_the_end_of_their_side() -> None:
    """In columns, and row by row where the pair does something unusual."""
    for size, snaplen in ((0, 1000), (50, 1000), (50, 54)):
        ends = [
            Packet(True, 1004, bytes(size), FIN | ACK, 5004), Packet(False, 5004, bytes(size), FIN | ACK, 1005 + size),
        ]  # fmt: skip
        for side, end in ((True, 1005 + size), (False, 5005 + size)):
            for distance, is_another in ((NEAR, False), (NEAR + 1, True), (-NEAR, False), (-NEAR - 1, True)):
                late = Packet(side, end + distance, b"late")
                for after in ([], SECOND):
                    connections = read([*FIRST, *ends, late, *after], snaplen=snaplen).transport.connections
                    assert len(connections) == 1 + is_another + bool(after)


def test_what_is_held_of_a_connection_is_delivered_once_another_one_has_its_endpoints() -> None:
    behind_a_hole = Packet(True, 1104, b"behind", PSH)
    for cuts in ([], [len(FIRST) + 1]):
        reading = read([*FIRST, behind_a_hole, *SECOND], cuts=cuts)
        assert reading.streams[0] == b"one" + b"?" * 100 + b"behind"
        assert not reading.at_end


def test_a_syn_is_known_again_by_its_answer_which_the_capture_had_first() -> None:
    for cuts in ([1], []):
        connections = read([FIRST[1], FIRST[0], *FIRST[2:]], cuts=cuts).transport.connections
        assert (len(connections), connections.syn_side(0)) == (1, 1)


def test_of_two_syns_without_acknowledgement_the_first_one_opened() -> None:
    for ack in (0, 1001):
        both = [Packet(True, 1000, b"", SYN), Packet(False, 5000, b"", SYN, ack)]
        connections = read([*both, *FIRST[2:]]).transport.connections
        assert (len(connections), connections.syn_side(0)) == (1, 0)


def test_a_late_syn_is_compared_with_the_first_row_of_its_side() -> None:
    first = Packet(True, 1001, b"one", PSH)
    answer = Packet(False, 5001, b"two", ACK, 1004 + 2 * LATE_SYN)
    assert len(read([first, answer, Packet(True, 1000, b"", SYN)]).transport.connections) == 1
