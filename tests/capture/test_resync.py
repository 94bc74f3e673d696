"""Behind damage reading goes on: what a broken disk or transfer costs is what it touched, and little more."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.capture import open_capture
from dissector.core.store import Store
from tests.capture.test_damage import packets
from tests.capture.test_formats import clean_packets, written
from tests.capture.writers import Seen, pcap, pcapng
from tests.cases import cases

WRITERS = {
    "pcap": pcap,
    "pcap, big-endian, nanoseconds": lambda p: pcap(p, order=">", magic=0xA1B23C4D),
    "pcap, modified": lambda p: pcap(p, magic=0xA1B2CD34, more=bytes(8)),
    "pcapng": pcapng,
}
HEAD = 128
"""Bytes at the beginning that stay whole."""


def overwritten(data: bytes, at: int, size: int, chance: random.Random) -> bytes:
    return data[:at] + chance.randbytes(size) + data[at + size :]


def blanked(data: bytes, at: int, size: int, chance: random.Random) -> bytes:
    return data[:at] + bytes(size) + data[at + size :]


def lost(data: bytes, at: int, size: int, chance: random.Random) -> bytes:
    return data[:at] + data[at + size :]


def inserted(data: bytes, at: int, size: int, chance: random.Random) -> bytes:
    return data[:at] + chance.randbytes(size) + data[at:]


@pytest.mark.long
@pytest.mark.slow
@cases("harm", [overwritten, blanked, lost, inserted])
@cases("name", WRITERS)
def test_damage_costs_what_it_touches_and_little_more(
    tmp_path: Path, name: str, harm: Callable[[bytes, int, int, random.Random], bytes]
) -> None:
    clean = clean_packets()
    data = WRITERS[name](clean)
    chance = random.Random(f"{name} {harm.__name__}")
    whole = {packet.data for packet in clean}
    costs = []
    for _ in range(15):
        size = chance.choice((1, 4, 16, 64, 512, 4096))
        at = chance.randrange(HEAD, len(data) - 8192)
        touched = {
            packet.data for packet, place in _places(clean, data) if place < at + size and place + _span(packet) > at
        }
        reader = open_capture(str(written(tmp_path, harm(data, at, size, chance))), Store())
        found = packets(reader)
        missing = whole - set(found) - touched
        costs.append(len(missing))
    # pcap does not mark where a packet ends: one that lost bytes takes as many of those behind it.
    assert max(costs) <= (12 if harm is lost and name != "pcapng" else 0)
    assert sum(costs) <= 40


def _span(packet: Seen) -> int:
    return len(packet.data) + 64


def _places(clean: list[Seen], data: bytes) -> list[tuple[Seen, int]]:
    """About where each packet stands."""
    places, at = [], 0
    for packet in clean:
        at = data.index(packet.data, at)
        places.append((packet, at - 32))
        at += len(packet.data)
    return places


@cases("name", WRITERS)
def test_skipped_bytes_are_reported_with_their_place_and_size(tmp_path: Path, name: str) -> None:
    clean = clean_packets()[:60]
    one, other = WRITERS[name](clean[:30]), WRITERS[name](clean)
    at = len(one)
    reader = open_capture(str(written(tmp_path, other[:at] + b"\xff" * 777 + other[at:])), Store())
    assert packets(reader) == [packet.data for packet in clean]
    [problem] = reader.problems
    assert f"packet 31 at byte {at:,}: " in problem.message
    assert problem.message.endswith("; 777 bytes skipped")


def test_much_damage_is_reported_as_some_places_and_a_count(tmp_path: Path) -> None:
    clean = clean_packets() * 4
    data = pcap(clean)[:24] + b"".join(pcap(clean[n : n + 10])[24:] + b"\xff" * 100 for n in range(0, len(clean), 10))
    reader = open_capture(str(written(tmp_path, data)), Store())
    assert packets(reader) == [packet.data for packet in clean]
    assert len(reader.problems) <= 22
    assert any("more places are damaged" in problem.message for problem in reader.problems)
