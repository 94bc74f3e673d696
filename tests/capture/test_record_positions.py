"""The kernel goes from record to record as a plain loop does, whatever the bytes, and reads nothing outside of them."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.files import CaptureFormat
from dissector.capture.integers import ByteOrder, room_for
from dissector.capture.pcap import MAGICS, Pcap, pcap_records
from dissector.capture.pcapng import Pcapng
from dissector.capture.pcapng_blocks import packet_blocks
from dissector.core.limits import DEFAULT
from tests.capture.writers import Seen, pcap, pcapng

START = 1_700_000_000_000_000_000
ORDERS: st.SearchStrategy[ByteOrder] = st.sampled_from(("<", ">"))
SIZES = st.integers(0, 24).map(lambda n: 4 * n) | st.sampled_from((1, 7, 2**31, 2**32 - 1))


@given(
    order=ORDERS, header=st.sampled_from((16, 24)), lengths=st.lists(SIZES), rest=st.binary(max_size=40),
    at=st.integers(0, 40), stop=st.integers(0, 1000), most=st.integers(1, 30),
)  # fmt: skip
def test_pcap_records_are_those_of_a_plain_loop(
    order: ByteOrder, header: int, lengths: list[int], rest: bytes, at: int, stop: int, most: int
) -> None:
    def record(captured: int) -> bytes:
        return struct.pack(f"{order}4I", 1, 2, captured, 3).ljust(header, b"\1") + bytes(
            captured if captured < 99 else 0
        )

    data = bytes(at) + b"".join(map(record, lengths)) + bytes(16) + rest
    wanted, place = [], at
    while place < stop and len(wanted) < most and place + header <= len(data):
        (captured,) = struct.unpack_from(f"{order}I", data, place + 8)
        if captured > 80 or place + header + captured > len(data) or not any(data[place : place + 16]):
            break
        wanted.append(place)
        place += header + captured
    positions = room_for(most, at, stop, header)
    buffer = np.frombuffer(data, np.uint8)
    found, following = pcap_records(buffer, at, stop, positions, header=header, largest=80, order=order)
    assert (positions[:found].tolist(), following) == (wanted, place)


@given(
    order=ORDERS, blocks=st.lists(st.tuples(st.sampled_from((2, 3, 6, 6, 6, 1, 2989)), SIZES)),
    rest=st.binary(max_size=40), at=st.integers(0, 40), stop=st.integers(0, 1000), most=st.integers(1, 30),
)  # fmt: skip
def test_packet_blocks_are_those_of_a_plain_loop(
    order: ByteOrder, blocks: list[tuple[int, int]], rest: bytes, at: int, stop: int, most: int
) -> None:
    def block(kind: int, size: int) -> bytes:
        return struct.pack(f"{order}2I", kind, size) + bytes(max(0, size - 8) if size < 99 else 0)

    data = bytes(at) + b"".join(block(*each) for each in blocks) + rest
    wanted, place = [], at
    while place < stop and len(wanted) < most and place + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}2I", data, place)
        if not {2: 32, 3: 16, 6: 32}.get(kind, 81) <= size <= 80 or size % 4 or place + size > len(data):
            break
        wanted.append(place)
        place += size
    positions = room_for(most, at, stop, 16)
    found, following = packet_blocks(np.frombuffer(data, np.uint8), at, stop, positions, largest=80, order=order)
    assert (positions[:found].tolist(), following) == (wanted, place)


def opened(data: bytes) -> CaptureFormat:
    return (Pcap if data[:4] in MAGICS else Pcapng)("name", data[:4], 0, DEFAULT)


def test_first_batches_are_small_and_the_next_ones_larger() -> None:
    data = np.frombuffer(pcap([Seen(START, b"abcd", 4)] * 150_000), np.uint8)
    file = opened(data.tobytes())
    sizes = []
    while (batch := file.next(data, ended=True)) is not None:
        sizes.append(len(batch))
    assert sizes[:4] == [4096, 8192, 16384, 32768]
    assert max(sizes) == 32768
    assert sum(sizes) == 150_000


def test_many_blocks_that_are_no_packets_are_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.capture.pcapng.BATCH_BYTES", 64)
    packets = [Seen(START + n, b"abcd", 4) for n in range(4)]
    clean = pcapng(packets)
    at = clean.index(b"\x06\0\0\0")
    custom = b"\xad\x0b\0\0" + (32).to_bytes(4, "little") + bytes(20) + (32).to_bytes(4, "little")
    data = np.frombuffer(clean[:at] + custom * 5 + clean[at:], np.uint8)
    file = opened(data.tobytes())
    found = 0
    while (batch := file.next(data, ended=True)) is not None:
        found += len(batch)
    assert (found, file.problems) == (4, [])
