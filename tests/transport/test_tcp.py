"""What TCP may do on a wire and a capture may do to it, a test each: the streams stay what was sent."""

from dataclasses import replace

import pytest

from dissector.core.limits import DEFAULT
from tests.cases import cases
from tests.traffic import ACK, FIN, PSH, RST, SYN, Packet, Turn, bytes_without_mark, conversation, ethernet
from tests.transport.reading import read

ASKED, SAID = bytes_without_mark(300), bytes_without_mark(500)[::-1]
TALK = [
    turn for n in range(5) for turn in (Turn(True, ASKED[60 * n : 60 * n + 60]), Turn(False, SAID[100 * n :][:100]))
]
PACKETS = conversation(TALK, segment=50)
BOTH = {0: ASKED, 1: SAID}
END = (1001 + len(ASKED), 5001 + len(SAID))


def acknowledged(packets: list[Packet]) -> list[Packet]:
    """Each piece of data, and at once an acknowledgement of it without data."""
    out = []
    for packet in packets:
        out.append(packet)
        if packet.payload:
            out.append(Packet(not packet.from_client, packet.ack, b"", ACK, packet.seq + len(packet.payload)))
    return out


def test_a_syn_with_data_and_its_answer_with_data() -> None:
    opening = [replace(PACKETS[0], payload=ASKED[:50]), replace(PACKETS[1], payload=SAID[:50])]
    rest = [p for p in PACKETS[2:] if p.seq not in (1001, 5001)]
    assert read([*opening, *rest]).streams == BOTH


@pytest.mark.parametrize("garbage", [b"", b"\0"])
def test_keep_alives_repeat_the_byte_before_the_next_one(garbage: bytes) -> None:
    alive = [Packet(True, END[0] - 1, garbage), Packet(False, END[1], b"", ACK, END[0])]
    reading = read([*PACKETS, *alive * 3, Packet(True, END[0], b"more")])
    assert reading.streams == {0: ASKED + b"more", 1: SAID}


def test_a_zero_window_probe_brings_its_byte_once() -> None:
    probe = Packet(True, END[0], b"m")
    reading = read([*PACKETS, probe, probe, probe, Packet(True, END[0], b"more")])
    assert reading.streams == {0: ASKED + b"more", 1: SAID}


def test_an_rst_adds_nothing_and_ends_both_sides() -> None:
    reading = read([*PACKETS, Packet(False, END[1], b"", RST | ACK, END[0])])
    assert reading.streams == BOTH
    assert reading.transport.connections.ended(0) == (0, RST)


def test_a_side_may_talk_on_after_the_other_one_closed() -> None:
    fin = Packet(True, END[0], b"", FIN | ACK, END[1])
    more = [Packet(False, END[1] + 10 * n, b"0123456789", ACK, END[0] + 1) for n in range(20)]
    assert read([*PACKETS, fin, *more]).streams == {0: ASKED, 1: SAID + b"0123456789" * 20}


def test_both_sides_may_open_at_once() -> None:
    syns = [Packet(True, 1000, b"", SYN), Packet(False, 5000, b"", SYN)]
    answers = [Packet(True, 1000, b"", SYN | ACK, 5001), Packet(False, 5000, b"", SYN | ACK, 1001)]
    for opening in ([*syns, *answers], [*syns, *answers[::-1]], [syns[0], syns[1], syns[1], *answers]):
        for cuts in ([], [1, 2, 3, 4]):
            reading = read([*opening, *PACKETS[2:]], cuts=cuts)
            assert reading.streams == BOTH
            assert len(reading.transport.connections) == 1


def test_the_other_side_opening_after_a_refusal_is_another_connection() -> None:
    refused = [Packet(True, 9, b"", SYN), Packet(False, 0, b"", RST | ACK, 10), Packet(False, 5000, b"", SYN)]
    assert len(read(refused).transport.connections) == 2


def test_packets_seen_twice_with_other_addresses_and_hops_count_once() -> None:
    frames = []
    for packet in acknowledged(PACKETS):
        frame = bytearray(ethernet(packet))
        frames.append(bytes(frame))
        frame[:12] = b"routerrouter"
        frame[22] -= 1  # the time to live
        frames.append(bytes(frame))
    assert read(frames).streams == BOTH
    assert read([*frames[::2], *frames[1::2]]).streams == BOTH


@cases("begin", range(2, len(PACKETS)))
def test_a_capture_may_begin_anywhere(begin: int) -> None:
    seen = PACKETS[begin:]
    found = read(acknowledged(seen))
    ends = [found.transport.connections.endpoints(0)[side][1] for side in (0, 1)]
    sent = {ends.index(40001): ASKED, ends.index(9092): SAID}
    for direction, data in found.streams.items():
        assert data
        assert sent[direction].endswith(data)


@pytest.mark.parametrize("client", [True, False])
def test_of_one_direction_nothing_is_missing(client: bool) -> None:
    """Its acknowledgements speak of bytes of the other direction, of which there are none: no gap of those."""
    seen = [packet for packet in acknowledged(PACKETS) if packet.from_client == client]
    assert list(read(seen).streams.values()) == [ASKED if client else SAID]


def test_acknowledgements_may_come_before_what_they_acknowledge() -> None:
    """Several queues of a card, or two taps, each in order: one lags by less than `acknowledged_packets`."""
    packets = acknowledged(PACKETS)
    order = sorted(range(len(packets)), key=lambda n: n + (12 if packets[n].from_client and n > 1 else 0))
    assert read([packets[n] for n in order]).streams == BOTH


def test_segments_may_be_as_large_as_ip_allows() -> None:
    data = bytes_without_mark(65_495 * 3)
    packets = conversation([Turn(True, data)], segment=65_495)
    assert read([*packets[:3], packets[4], packets[3]]).streams == {0: data}


@cases("before", [0, 1, 30, 150, 299])
def test_sequence_numbers_wrap_wherever_they_like(before: int) -> None:
    packets = conversation(TALK, segment=50, isn=(2**32 - 1 - before, 2**32 - 1 - before))
    assert read(packets).streams == BOTH
    late = [*packets[:4], *packets[5:9], packets[4], *packets[9:]]
    assert read(late).streams == BOTH


def test_what_waits_out_of_order_is_bounded_by_packets_and_by_bytes() -> None:
    data = bytes_without_mark(4000)
    packets = conversation([Turn(True, data)], segment=10)
    late = [*packets[:2], *packets[3:], packets[2]]
    gone = {0: b"?" * 10 + data[10:]}
    assert read(late).streams == {0: data}
    assert read(late, limits=replace(DEFAULT, out_of_order_packets=100, losses=0)).streams == gone
    assert read(late, limits=replace(DEFAULT, out_of_order_bytes=1000)).streams == gone


def test_urgent_and_pushed_bytes_are_bytes_of_the_stream() -> None:
    packets = [replace(p, flags=p.flags | PSH | 32) if p.payload else p for p in PACKETS]
    assert read(packets).streams == BOTH
