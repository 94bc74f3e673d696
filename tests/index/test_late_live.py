"""Late bytes in a capture that grows: it ends with the rows of the same capture read whole, however it grew, as long as
nothing is later than the wait; and nothing waits where nothing is missing."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import GrowingFile
from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.exchange.to_json import json_line
from dissector.transport import Transport
from tests.cases import cases
from tests.conftest import costly
from tests.networks import clean_exchanges, one_connection, traffic
from tests.traffic import ACK, Packet, capture_of, ethernet, seeds
from tests.transport.reading import batch, part

pytestmark = pytest.mark.slow

PACKET_NS = 1_000_000
"""From one packet of a test to the next."""
WAIT = 400
"""Packets that come within the wait of these tests."""
LIMITS = replace(DEFAULT, late_ns=WAIT * PACKET_NS)
TRAFFIC = traffic()


def lines(source: str | GrowingFile, limits: Limits = LIMITS) -> list[bytes]:
    with Capture([source], limits=limits) as capture:
        return sorted(json_line(exchange) for exchange in capture.exchanges())


def grown(path: Path, cuts: list[int], limits: Limits = LIMITS) -> list[bytes]:
    """Rows of the file, read as it had grown to each cut."""
    data = path.read_bytes()
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    pieces = [data[low:high] for low, high in pairwise(edges)]
    growing = path.with_suffix(".growing")
    growing.write_bytes(b"")

    def ended() -> bool:
        with growing.open("ab") as file:
            file.write(pieces.pop(0) if pieces else b"")
        return not pieces

    return lines(GrowingFile(str(growing), ended), limits)


def delayed(packets: list[Packet], chance: random.Random, most: int) -> list[Packet]:
    """Some packets with bytes come up to so many packets later, behind what follows them."""
    data = [n for n, packet in enumerate(packets) if packet.payload]
    later = {n: chance.randint(1, most) + 0.5 for n in chance.sample(data, min(len(data), chance.randint(1, 8)))}
    order = sorted(range(len(packets)), key=lambda n: n + later.get(n, 0))
    return [packets[n] for n in order]


@pytest.mark.long
@costly(5)
@given(chance=seeds, cuts=st.lists(st.integers(24, 1_000_000), max_size=6))
def test_a_capture_that_grows_ends_with_the_rows_of_the_whole(
    tmp_path: Path, chance: random.Random, cuts: list[int]
) -> None:
    path = Path(capture_of(tmp_path, delayed(TRAFFIC.packets, chance, WAIT - 1)))
    with Capture([str(path)], limits=LIMITS) as capture:
        read = [exchange.row for exchange in capture.exchanges()]
    assert clean_exchanges(read) == TRAFFIC.whole
    assert grown(path, cuts) == lines(str(path))


@pytest.mark.long
@cases("copies", [1, 3])
def test_so_it_does_with_packets_captured_twice_on_a_bond_that_reorders(tmp_path: Path, copies: int) -> None:
    """Each packet on two links, of which one lags by more than `acknowledged_packets`."""
    one = one_connection(40001, [1] * 150, pipelined=1, segment=1400, isn=(1000, 5000))
    both = [(n, packet) for n, packet in enumerate(one.packets)]
    both += [(n + 150 * (n % 2), packet) for n, packet in enumerate(one.packets) for _ in range(copies - 1)]
    moved = [(n + (100 if n % 5 == 0 and packet.payload else 0), packet) for n, packet in both]
    path = Path(capture_of(tmp_path, [packet for _, packet in sorted(moved, key=lambda each: each[0])]))
    assert grown(path, [1000, 20_000, 20_001]) == lines(str(path))
    with Capture([str(path)], limits=LIMITS) as capture:
        assert sum(clean_exchanges([exchange.row for exchange in capture.exchanges()]).values()) > 0
    with Capture([str(path)]) as capture:
        assert not [exchange for exchange in capture.exchanges() if exchange.fields.kind == "gap"]


def late_request(path: Path, later: int, copies: int = 1) -> Path:
    one = one_connection(40001, [1] * 600, pipelined=1, segment=1400, isn=(1000, 5000))
    at = [n for n, packet in enumerate(one.packets) if packet.payload and packet.from_client][5]
    kept = one.packets[:at] + one.packets[at + 1 :]
    return Path(capture_of(path, [*kept[: at + later], *[one.packets[at]] * copies, *kept[at + later :]]))


def gaps(found: list[bytes]) -> int:
    return sum(b'"kind":"gap"' in line for line in found)


@pytest.mark.long
@cases(("later", "lost"), [(65, 0), (300, 0), (WAIT, 0), (WAIT + 60, 1), (900, 1)])
def test_the_wait_has_two_sides(tmp_path: Path, later: int, lost: int) -> None:
    """The acknowledgement is a packet or two behind the place of the bytes."""
    path = late_request(tmp_path, later)
    assert gaps(grown(path, [5_000])) == lost
    assert gaps(lines(str(path))) == 0, "a file waits for longer"


@pytest.mark.long
def test_where_time_stands_still_packets_are_counted(tmp_path: Path) -> None:
    """A clock that moves by a nanosecond a packet: the hole waits for `late_packets`."""
    path = late_request(tmp_path, 700)
    slow = replace(DEFAULT, late_ns=10**15)
    assert gaps(grown(path, [5_000], slow)) == 0
    assert gaps(grown(path, [5_000], replace(slow, late_packets=600))) == 1


def delivered(packets: list[Packet], limits: Limits) -> list[int]:
    """How many bytes have come out of the transport behind each packet of a live capture."""
    frames = [ethernet(packet) for packet in packets]
    store = Store()
    whole = batch(frames, base=store.add(b"".join(frames)))
    transport = Transport(store, limits)
    total, found = 0, []
    for n in range(len(frames)):
        total += sum(int(runs.size.sum()) for runs in transport.feed(part(whole, n, n + 1)))
        found.append(total)
    return found


def test_where_nothing_is_missing_nothing_waits() -> None:
    sent = np.cumsum([len(packet.payload) for packet in TRAFFIC.packets]).tolist()
    assert delivered(TRAFFIC.packets, DEFAULT) == sent


@pytest.mark.long
def test_a_hole_of_one_direction_makes_no_other_wait() -> None:
    other = one_connection(40009, [1] * 4, pipelined=1, segment=1400, isn=(1000, 5000))
    holed = [packet for n, packet in enumerate(other.packets) if n != 2]
    sent = [len(packet.payload) for packet in TRAFFIC.packets]
    both = [packet for pair in zip(holed, TRAFFIC.packets[: len(holed)], strict=True) for packet in pair]
    after = delivered(both + TRAFFIC.packets[len(holed) :], DEFAULT)
    server = sum(len(packet.payload) for packet in holed if not packet.from_client)
    assert after[-1] == sum(sent) + server


@pytest.mark.long
@cases("time_ns", [0, PACKET_NS])
def test_holes_that_never_fill_hold_no_more_than_the_packets_of_the_wait(time_ns: int) -> None:
    """Thousands of connections whose clients leave bytes out; of some captures the clock does not move."""
    most = 1_000
    packets = []
    for n in range(2_000):
        client = ("10.0.0.1", 10_000 + n)
        packets += [
            Packet(True, 1001, b"a", ACK, 5001, client=client), Packet(True, 1003, b"c", ACK, 5001, client=client),
            Packet(False, 5001, b"", ACK, 1004, client=client),
        ]  # fmt: skip
    frames = [ethernet(packet) for packet in packets]
    store = Store()
    whole = batch(frames, base=store.add(b"".join(frames)))
    whole = replace(whole, time_ns=whole.number * time_ns)
    for limits, expected in (
        (replace(DEFAULT, late_packets=most), most // 3 + 2),
        (replace(DEFAULT, late_packets=10**9, late_ns=300 * PACKET_NS), 150 if time_ns else 2_000),
    ):
        transport = Transport(store, limits)
        held = []
        for low, high in pairwise([*range(0, len(packets), 500), len(packets)]):
            transport.feed(part(whole, low, high))
            held.append(transport._reassembler.pending().shape[1])
        assert max(held) <= expected, held
