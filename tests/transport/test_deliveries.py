"""What TCP got through: retransmissions that are some, and those that are none; held tails; closed windows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.transport import Transport, deliveries
from dissector.transport.deliveries import Deliveries, Delivery, EventKind
from tests.traffic import ACK, SYN, Mangling, Packet, Turn, conversation, ethernet, manglings, streams
from tests.transport.reading import batch, read

MS = 1_000_000
SMALL = 100
Timed = tuple[float, Packet]
"""Milliseconds, and a packet."""
OPENING: list[Timed] = [
    (0, Packet(True, 1000, b"", SYN)),
    (1, Packet(False, 5000, b"", SYN | ACK, ack=1001)),
    (2, Packet(True, 1001, b"", ACK, ack=5001)),
]


def after(*packets: Timed) -> Deliveries:
    """What is known once a connection was opened and these packets came."""
    timed = [*OPENING, *packets]
    whole = batch([ethernet(packet) for _, packet in timed])
    whole = replace(whole, time_ns=np.array([10**9 + round(at * MS) for at, _ in timed], np.int64))
    store = Store()
    base = store.add(whole.data.tobytes())
    transport = Transport(store, DEFAULT)
    transport.feed(replace(whole, base=base))
    return transport.deliveries


def client(*packets: Timed) -> Delivery:
    """Of the client's direction."""
    found = after(*packets).of(0)
    assert found is not None
    return found


def request(at: float, size: int = SMALL, seq: int = 1001) -> Timed:
    return at, Packet(True, seq, b"a" * size, ACK, ack=5001)


def acknowledged(at: float, ack: int, window: int = 65_000) -> Timed:
    return at, Packet(False, 5001, b"", ACK, ack=ack, window=window)


AGAIN = [request(at) for at in (200, 600, 1_400, 3_000)]


def test_bytes_are_sent_again_until_they_are_acknowledged() -> None:
    found = client(request(10), *AGAIN)
    assert (found.retries, found.retry_ns - found.waiting_ns, found.retry_size) == (4, 2_990 * MS, SMALL)
    assert after(request(10), *AGAIN).stuck().tolist() == [0]
    later = after(request(10), *AGAIN, acknowledged(3_001, 1001 + SMALL))
    assert later.stuck().tolist() == []
    assert later.of(0) is not None
    assert client(request(10), *AGAIN, acknowledged(3_001, 1001 + SMALL)).is_acked


def test_three_retransmissions_are_stuck_and_two_a_loss() -> None:
    assert after(request(10), *AGAIN[:2]).stuck().tolist() == []
    assert after(request(10), *AGAIN[:3]).stuck().tolist() == [0]


def test_copies_of_a_packet_are_no_retransmissions() -> None:
    """Of several interfaces, within a millisecond."""
    copies = [request(10 + n / 10) for n in range(6)]
    assert client(*copies).retries == 0
    assert client(*copies, request(11.5)).retries == 1


def test_keep_alives_and_probes_of_a_closed_window_are_none() -> None:
    """A keep-alive repeats the last byte that was acknowledged; a closed window's probes wait for the receiver."""
    alive = [(at, Packet(True, 1000 + SMALL, b"a", ACK, ack=5001)) for at in (10_000, 20_000, 30_000, 40_000)]
    found = client(request(10), acknowledged(11, 1001 + SMALL), *alive)
    assert (found.retries, found.waiting_ns) == (0, 0)
    probes = [request(at, 1, 1001 + SMALL) for at in (300, 700, 1_500, 3_100)]
    closed = after(request(10), acknowledged(11, 1001 + SMALL, window=0), request(100, 1, 1001 + SMALL), *probes)
    assert closed.stuck().tolist() == []


def test_the_same_bytes_in_new_requests_are_no_retransmission() -> None:
    requests = [request(10 + 200 * n, SMALL, 1001 + n * SMALL) for n in range(8)]
    assert client(*requests).retries == 0


def test_the_largest_acknowledged_segment_is_known() -> None:
    small = [request(10, 300), acknowledged(11, 1301)]
    large = [request(at, 1_400, 1301) for at in (20, 220, 620, 1_420)]
    found = client(*small, *large)
    assert (found.largest_acked, found.retry_size, found.retries) == (300, 1_400, 3)
    passed = client(*small, request(20, 1_400, 1301), acknowledged(21, 2701), request(30, 1_400, 2701))
    assert passed.largest_acked == 1_400


def test_idleness_is_that_of_the_connection() -> None:
    quiet = client(request(10), acknowledged(11, 1001 + SMALL), request(70_011, seq=1001 + SMALL))
    assert quiet.idle_ns == 70_000 * MS


def test_a_tail_is_held_by_a_late_acknowledgement() -> None:
    """40 ms late, and the rest follows at once; not if it is 20 ms late, if the rest is 10 ms behind it, or if the
    acknowledgement has data."""
    for late, then, answers, is_held in (
        (40, 0.1, False, True), (200, 0.1, False, True), (20, 0.1, False, False), (40, 10, False, False),
        (40, 0.1, True, False), (700, 0.1, False, False),
    ):  # fmt: skip
        ack = (10 + late, Packet(False, 5001, b"b" * 10 if answers else b"", ACK, ack=1001 + 8))
        tail = request(10 + late + then, 92, 1009)
        at = 10**9 + round((10 + late + then) * MS)
        found = after(request(10, 8), ack, tail)
        assert found.has_event(EventKind.HELD_TAIL, 0, at, at) is is_held, (late, then, answers)
        assert not found.has_event(EventKind.HELD_TAIL, 1, 0, 1 << 62)


def test_closed_windows_are_events_of_the_receiver() -> None:
    found = after(request(10), acknowledged(11, 1001 + SMALL, window=0))
    assert found.has_event(EventKind.ZERO_WINDOW, 1, 10**9 + 10 * MS, 10**9 + 12 * MS)
    assert not found.has_event(EventKind.ZERO_WINDOW, 1, 10**9 + 12 * MS, 1 << 62)
    assert not found.has_event(EventKind.ZERO_WINDOW, 0, 0, 1 << 62)


@given(sent=streams(), mangle=manglings(loss=True), cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_batches_make_no_difference(sent: tuple[bytes, bytes], mangle: Mangling, cuts: list[int]) -> None:
    packets = mangle(conversation([Turn(True, sent[0]), Turn(False, sent[1])], segment=100))
    if packets:
        whole, parts = (read(packets, cuts=each).transport.deliveries for each in ([], cuts))
        assert [whole.of(side) for side in (0, 1)] == [parts.of(side) for side in (0, 1)]
        assert whole.first_sequence_numbers(0) == parts.first_sequence_numbers(0)


def test_a_connection_that_begins_like_another_is_found_among_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "COMPARED", 2)
    store, numbers = Store(), [10**6, 2 * 10**6, 10**6, 3 * 10**6, 4 * 10**6, 2 * 10**6, 4 * 10**6]
    transport = Transport(store, DEFAULT)
    found = []
    for port, isn in enumerate(numbers, 40_000):
        packets = conversation([], isn=(isn, isn + 7), client=("10.0.0.1", port))
        data = [ethernet(packet) for packet in packets]
        base = store.add(b"".join(data))
        transport.feed(batch(data, base=base, first=4 * port))
        found.append(transport.deliveries.equal_starts().connections.tolist())
    assert found == [[], [], [0, 2], [0, 2], [0, 2], [0, 2], [0, 2, 4, 6]]
    starts = transport.deliveries.equal_starts()
    assert len({*starts.numbers.tolist()}) == 2
    assert transport.deliveries.equal_starts() is starts
