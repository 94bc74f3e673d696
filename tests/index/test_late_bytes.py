"""Bytes that a file has behind their acknowledgement are not missing: captures of two points merged by clocks that
differ, queues of a network card."""

from dataclasses import replace
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT
from tests.networks import clean_exchanges, one_connection, one_file, rows_of
from tests.traffic import Packet


def moved(packets: list[Packet], at: int, later: int) -> list[Packet]:
    """The packets with one of them so many later."""
    kept = packets[:at] + packets[at + 1 :]
    return [*kept[: at + later], packets[at], *kept[at + later :]]


def test_a_late_request_leaves_all_exchanges_whole(tmp_path: Path) -> None:
    """One segment of a client comes 300 packets behind its acknowledgement: 240 exchanges stay what they are."""
    one = one_connection(40001, [1] * 240, pipelined=1, segment=1400, isn=(1000, 5000))
    requests = [n for n, packet in enumerate(one.packets) if packet.payload and packet.from_client]
    rows = rows_of(one_file(tmp_path, moved(one.packets, requests[5], 300)))
    assert clean_exchanges(rows) == one.whole
    late = [row.number for row in rows if row.latency_ns is None or row.latency_ns < 0]
    assert late == [6], "the capture does not have when its own request was sent"


@pytest.mark.long
@pytest.mark.slow
def test_a_late_response_does_so_too(tmp_path: Path) -> None:
    one = one_connection(40001, [1, 400] * 60, pipelined=1, segment=1400, isn=(1000, 5000))
    responses = [n for n, packet in enumerate(one.packets) if packet.payload and not packet.from_client]
    for at in (responses[0], responses[7], responses[40]):
        assert clean_exchanges(rows_of(one_file(tmp_path, moved(one.packets, at, 500)))) == one.whole


def test_a_file_waits_for_a_bounded_number_of_packets(tmp_path: Path) -> None:
    """With a bound of 100: 90 packets behind the acknowledgement are late, 200 are lost."""
    one = one_connection(40001, [1] * 240, pipelined=1, segment=1400, isn=(1000, 5000))
    requests = [n for n, packet in enumerate(one.packets) if packet.payload and packet.from_client]
    limits = replace(DEFAULT, late_packets=100)
    for later, whole in ((90, True), (200, False)):
        [path] = one_file(tmp_path, moved(one.packets, requests[5], later))
        with Capture([str(path)], limits=limits) as capture:
            found = clean_exchanges([exchange.row for exchange in capture.exchanges()])
        assert (found == one.whole) is whole


def test_lost_bytes_are_waited_for_a_few_times_only(tmp_path: Path) -> None:
    """From the fourth on a hole of a direction is a gap after 64 packets, as in a capture that grows."""
    one = one_connection(40001, [1] * 600, pipelined=1, segment=1400, isn=(1000, 5000))
    requests = [n for n, packet in enumerate(one.packets) if packet.payload and packet.from_client]
    lost = [requests[n] for n in (5, 105, 205, 305)]
    late = moved(one.packets, requests[405], 300)
    limits = replace(DEFAULT, late_packets=301)
    for holes, is_late in ((2, True), (4, False)):
        kept = [packet for packet in late if packet not in [one.packets[n] for n in lost[:holes]]]
        [path] = one_file(tmp_path, kept)
        with Capture([str(path)], limits=limits) as capture:
            gaps = sum(exchange.fields.kind == "gap" for exchange in capture.exchanges())
        assert gaps == holes + (not is_late)
