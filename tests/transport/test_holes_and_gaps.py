"""Holes: when they are waited for, when they are gaps, and what sequence numbers are believed."""

from dataclasses import replace

import pytest

from dissector.core.batches import RunKind
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.transport import Transport
from tests.cases import cases
from tests.traffic import ACK, FIN, RST, Packet, Turn, bytes_without_mark, conversation, ethernet
from tests.transport.reading import batch, read

DATA = bytes_without_mark(100)
PACKETS = conversation([Turn(True, DATA)], segment=10)
"""SYN, SYN|ACK, then ten segments of ten bytes."""
AT_ONCE = replace(DEFAULT, losses=0)
"""Holes wait for packets alone, as those of a direction do that waited in vain for late bytes."""
OUT_OF_WINDOW = "TCP sequence number that cannot be"


def idle(count: int, ack: int = 1001) -> list[Packet]:
    """The server says nothing, and acknowledges as much."""
    return [Packet(False, 5001, b"", ACK, ack)] * count


@cases("over", [b"x" * 25, b"x" * 15, b"x" * 10])
def test_bytes_across_a_fin_that_waits_are_taken(over: bytes) -> None:
    fin = Packet(True, 1021, b"", FIN | ACK)
    [stream] = read([*PACKETS[:2], fin, Packet(True, 1021 + 10 - len(over), over)]).streams.values()
    assert stream == b"?" * (30 - len(over)) + over


def test_a_segment_across_what_is_held_fills_both_sides_of_it() -> None:
    across = Packet(True, 1001, DATA[:30])
    assert read([*PACKETS[:2], PACKETS[3], across]).streams == {0: DATA[:30]}
    assert read([*PACKETS[:2], PACKETS[3], PACKETS[5], replace(across, payload=DATA[:50])]).streams == {0: DATA[:50]}


def test_a_fin_that_comes_early_or_twice_adds_nothing() -> None:
    fin = Packet(True, 1101, b"", FIN | ACK)
    assert read([*PACKETS[:5], fin, fin, *PACKETS[5:], fin, fin]).streams == {0: DATA}


def test_an_acknowledged_hole_is_a_gap_after_its_grace_and_not_before() -> None:
    grace = DEFAULT.acknowledged_packets
    acked = [Packet(False, 5001, b"", ACK, 1101)]
    late = [*PACKETS[:3], *PACKETS[4:], *acked]
    assert read([*late, *idle(grace - 1), PACKETS[3]], limits=AT_ONCE).streams == {0: DATA}
    gone = read([*late, *idle(grace + 1), PACKETS[3]], limits=AT_ONCE)
    assert gone.streams == {0: DATA[:10] + b"?" * 10 + DATA[20:]}
    assert [run.kind for run in gone.runs].count(RunKind.LOST) == 1


def test_a_hole_that_nobody_acknowledged_waits_on() -> None:
    late = [*PACKETS[:3], *PACKETS[4:], *idle(500), PACKETS[3]]
    assert read(late, limits=AT_ONCE).streams == {0: DATA}
    assert b"?" in read(late, limits=replace(AT_ONCE, out_of_order_packets=400)).streams[0]


@pytest.mark.long
@pytest.mark.slow
def test_a_gap_is_delivered_although_its_direction_sends_no_more() -> None:
    late = [*PACKETS[:3], *PACKETS[4:]]
    for cuts in ([], list(range(200))):
        acked = [*late, Packet(False, 5001, b"", ACK, 1101), *idle(100)]
        assert not read(acked, cuts=cuts, limits=AT_ONCE).at_end
        assert not read([*late, *idle(100)], cuts=cuts, limits=replace(AT_ONCE, out_of_order_packets=50)).at_end
        assert len(read([*late, *idle(100)], cuts=cuts, limits=AT_ONCE).at_end) == 9


def test_an_acknowledgement_of_a_part_gives_up_that_part_only() -> None:
    holes = [*PACKETS[:2], PACKETS[3], *PACKETS[5:]]  # bytes 0-10 and 20-30 are late
    late = [*holes, Packet(False, 5001, b"", ACK, 1021), *idle(100), PACKETS[2], PACKETS[4]]
    assert read(late, limits=AT_ONCE).streams == {0: b"?" * 10 + DATA[10:]}


def test_one_wrong_number_ahead_does_not_silence_what_follows() -> None:
    wrong = Packet(True, 1001 + 2**20, b"wrong")
    limits = replace(DEFAULT, out_of_order_packets=4)
    reading = read([*PACKETS[:4], wrong, *PACKETS[4:]], limits=limits)
    assert reading.streams[0].startswith(DATA)


def test_a_wild_sequence_number_is_counted_and_makes_no_gap() -> None:
    wild = Packet(True, 1001 + 2**31 - 5, b"wild")
    reading = read([*PACKETS[:5], wild, *PACKETS[5:]])
    assert reading.streams == {0: DATA}
    assert reading.transport.ignored == {OUT_OF_WINDOW: 1}
    assert read([*PACKETS[:5], wild, wild, *PACKETS[5:]]).transport.ignored == {OUT_OF_WINDOW: 2}


@cases("ahead", [2**30 + 200, 2**31, 3 * 2**30 - 50])
def test_a_capture_that_paused_for_longer_than_any_window_goes_on(ahead: int) -> None:
    later = [replace(packet, seq=packet.seq + ahead) for packet in PACKETS[2:]]
    transport = Transport(Store(), DEFAULT)
    [runs] = transport.feed(batch([ethernet(packet) for packet in [*PACKETS, *later]]))
    data = [(RunKind.DATA, 10)] * 10
    assert list(zip(runs.kind.tolist(), runs.size.tolist(), strict=True)) == [*data, (RunKind.LOST, ahead - 100), *data]
    assert not transport.ignored


def test_the_first_bytes_after_a_syn_are_a_gap_where_they_are_missing() -> None:
    assert read([*PACKETS[:2], *PACKETS[3:]]).streams == {0: b"?" * 10 + DATA[10:]}


def test_a_missing_syn_is_known_from_its_answer() -> None:
    assert read([PACKETS[1], *PACKETS[3:]]).streams == {1: b"?" * 10 + DATA[10:]}


def test_a_capture_that_begins_in_the_middle_begins_with_the_first_byte_seen() -> None:
    assert read(PACKETS[5:]).streams == {0: DATA[30:]}


def test_a_syn_may_carry_bytes() -> None:
    syn = replace(PACKETS[0], payload=DATA[:10])
    assert read([syn, PACKETS[1], *PACKETS[3:]]).streams == {0: DATA}


def test_keep_alives_and_window_probes_are_no_data() -> None:
    last = PACKETS[-1].seq + 10
    probes = [Packet(True, last - 1, b""), Packet(True, last - 1, DATA[-1:]), Packet(True, last, b"")]
    assert read([*PACKETS, *probes]).streams == {0: DATA}


def test_a_packet_captured_twice_is_delivered_once() -> None:
    assert read([packet for packet in PACKETS for _ in range(2)]).streams == {0: DATA}


def test_what_an_rst_carries_is_no_data() -> None:
    assert read([*PACKETS, Packet(True, 1101, b"reason", RST | ACK)]).streams == {0: DATA}


def test_data_repeated_after_a_fin_is_no_data() -> None:
    fin = Packet(True, 1101, b"", FIN | ACK)
    assert read([*PACKETS, fin, PACKETS[-1], fin]).streams == {0: DATA}


def test_a_syn_repeated_with_its_number_opens_nothing_and_moves_nothing() -> None:
    for cuts in ([], [5], [6]):
        assert read([PACKETS[0], *PACKETS[:4], PACKETS[0], *PACKETS[4:]], cuts=cuts).streams == {0: DATA}
