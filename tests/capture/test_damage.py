"""Damaged and hostile files: good packets come out, damage is reported, nothing escapes and nothing hangs."""

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError, Reader, open_capture
from dissector.core.store import Store
from tests.cases import cases
from tests.traffic import block, conversation, ethernet, exchanges, pcap, pcapng

PACKETS = [ethernet(packet) for packet in conversation(exchanges(3))]
HEADER = pcapng([])
BASES = [
    pcap(PACKETS),
    pcap(PACKETS, order=">", nano=True),
    pcapng(PACKETS),
    pcapng(PACKETS, order=">"),
    pcapng(PACKETS[:2]) + block("<", 3, struct.pack("<I", 4) + b"abcd") + pcapng(PACKETS[2:], order=">"),
]
INTERESTING = [0, 1, 2, 3, 4, 6, 11, 12, 28, 0x7F, 0x80, 0xFF]


def opened(folder: Path, data: bytes) -> Reader:
    path = folder / "some.capture"
    path.write_bytes(data)
    return open_capture(str(path), Store())


def packets(reader: Reader) -> list[bytes]:
    """All packets; fails where columns don't agree or point outside of the file."""
    found: list[bytes] = []
    for batch in reader.batches():
        assert batch.number.tolist() == list(range(len(found), len(found) + len(batch)))
        columns = (batch.time_ns, batch.captured, batch.length, batch.link_type)
        assert all(len(column) == len(batch) for column in columns)
        assert (batch.captured >= 0).all()
        assert (batch.length >= batch.captured).all()
        assert (batch.offset >= 0).all()
        assert (batch.offset + batch.captured <= len(batch.data)).all()
        for at, size in zip(batch.offset.tolist(), batch.captured.tolist(), strict=True):
            found.append(batch.data[at : at + size].tobytes())
    assert reader.done <= reader.total
    return found


@given(
    base=st.sampled_from(BASES),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(INTERESTING) | st.integers(0, 255)), max_size=8),
    cut=st.none() | st.integers(0, 2000),
    more=st.binary(max_size=40),
)
def test_any_change_gives_packets_and_problems_or_one_plain_error(
    tmp_path: Path, base: bytes, changes: list[tuple[int, int]], cut: int | None, more: bytes
) -> None:
    data = bytearray(base)
    for at, byte in changes:
        data[at % len(data)] = byte
    try:
        reader = opened(tmp_path, bytes(data[:cut]) + more)
    except CaptureError as error:
        words = str(error)
    else:
        packets(reader)
        assert len(reader.problems) <= 12
        assert all("\n" not in problem.message for problem in reader.problems)
        words = "some.capture"
    assert "some.capture" in words
    assert "\n" not in words


@given(st.binary(max_size=300), st.sampled_from([b"", HEADER, pcap([]), b"\x0a\x0d\x0d\x0a"]))
def test_any_bytes_behind_a_good_beginning_bring_nothing_down(tmp_path: Path, data: bytes, begin: bytes) -> None:
    try:
        packets(opened(tmp_path, begin + data))
        words = ""
    except CaptureError as error:
        words = str(error)
    assert "\n" not in words


@cases("size", [0, 4, 11, 13, 28, 31])
def test_a_block_of_an_impossible_length_ends_reading(tmp_path: Path, size: int) -> None:
    reader = opened(tmp_path, pcapng(PACKETS) + struct.pack("<II", 6, size) + bytes(64))
    assert packets(reader) == PACKETS
    [problem] = reader.problems
    assert problem.code == "file-damaged"
    assert f"packet {len(PACKETS) + 1} at byte" in problem.message
    assert f"{len(PACKETS)} packets read" in problem.message


@cases("missing", [1, 5, 20])
@cases("make", [pcap, pcapng])
def test_a_packet_cut_off_by_the_end_of_the_file_is_reported_with_the_missing_bytes(
    tmp_path: Path, make: "type[pcap]", missing: int
) -> None:
    reader = opened(tmp_path, make(PACKETS)[:-missing])
    [*found, last] = packets(reader)
    assert found == PACKETS[:-1]
    assert len(last) >= len(PACKETS[-1]) - missing
    assert PACKETS[-1].startswith(last)
    [problem] = reader.problems
    assert problem.code == "file-truncated"
    assert f"packet {len(PACKETS)} at byte" in problem.message


@cases("claimed", [262_145, 1 << 20, (1 << 32) - 1])
def test_the_rest_of_a_file_is_no_packet_where_its_length_cannot_be(tmp_path: Path, claimed: int) -> None:
    record = struct.pack("<IIII", 1, 1, claimed, claimed) + bytes(60)
    reader = opened(tmp_path, pcap(PACKETS) + record)
    assert packets(reader) == PACKETS
    assert len(reader.problems) == 1


def test_a_file_may_end_with_the_least_simple_packet(tmp_path: Path) -> None:
    assert packets(opened(tmp_path, HEADER + block("<", 3, struct.pack("<I", 0)))) == [b""]


def test_a_captured_length_above_the_length_on_the_wire_is_its_length(tmp_path: Path) -> None:
    reader = opened(tmp_path, pcap([]) + struct.pack("<IIII", 1, 1, 8, 4) + b"12345678")
    [batch] = reader.batches()
    assert (batch.captured.tolist(), batch.length.tolist()) == ([8], [8])


def test_a_packet_longer_than_its_block_ends_with_it(tmp_path: Path) -> None:
    body = struct.pack("<IIIII", 0, 0, 0, 4_000, 4_000) + b"1234"
    assert packets(opened(tmp_path, HEADER + block("<", 6, body) + block("<", 6, bytes(20)))) == [b"1234", b""]


@cases("seconds", [2**62, -(2**63), 2**63 - 1, 0])
@cases("resolution", [0, 9, 18, 0x7F, 0x80, 0xFF])
def test_any_timestamp_is_read_without_a_crash(tmp_path: Path, seconds: int, resolution: int) -> None:
    options = struct.pack("<HHq", 14, 8, seconds) + struct.pack("<HHB3x", 9, 1, resolution) + bytes(4)
    packet = block("<", 6, struct.pack("<IIIII", 0, 2**32 - 1, 2**32 - 1, 0, 0))
    assert packets(opened(tmp_path, pcapng(PACKETS, options=options) + packet)) == [*PACKETS, b""]


def test_interfaces_that_were_never_described_are_ethernet_in_microseconds(tmp_path: Path) -> None:
    blocks = b"".join(block("<", 6, struct.pack("<IIIII", n * 7, 0, n, 0, 0)) for n in range(1, 2000))
    [batch] = opened(tmp_path, HEADER + blocks).batches()
    assert set(batch.link_type.tolist()) == {1}
    assert batch.time_ns.tolist() == [n * 1000 for n in range(1, 2000)]


def test_interfaces_mixed_in_one_batch_keep_their_clocks(tmp_path: Path) -> None:
    def interface(link_type: int, resolution: int) -> bytes:
        return block("<", 1, struct.pack("<HHI", link_type, 0, 0) + struct.pack("<HHB3x", 9, 1, resolution) + bytes(4))

    clocks = [(1, 6), (101, 9), (113, 3), (276, 12), (0, 0x8A)]
    data = HEADER[:28] + b"".join(interface(*clock) for clock in clocks)
    ticks = [5_000_000, 5_000_000_000, 5_000, 5_000_000_000_000, 5 * 1024]
    for _ in range(3):
        for number, count in enumerate(ticks):
            data += block("<", 6, struct.pack("<IIIII", number, count >> 32, count & 0xFFFFFFFF, 0, 0))
    [batch] = opened(tmp_path, data).batches()
    assert set(batch.time_ns.tolist()) == {5_000_000_000}
    assert batch.link_type.tolist() == [link_type for link_type, _ in clocks] * 3
