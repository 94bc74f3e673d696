"""Files of every flavor give the same packets; a file that is no capture, or damaged, is reported in one line."""

import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError, open_capture
from dissector.capture_session import Capture
from dissector.core.store import Store
from tests.cases import cases
from tests.traffic import block, conversation, ethernet, exchanges, pcap, pcapng

PACKETS = [ethernet(packet) for packet in conversation(exchanges(5))]
START = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


def packets(path: Path) -> tuple[list[bytes], list[int], list[str]]:
    """Bytes, times and problems."""
    reader = open_capture(str(path), Store())
    data, times = [], []
    for batch in reader.batches():
        for offset, size in zip(batch.offset.tolist(), batch.captured.tolist(), strict=True):
            data.append(batch.data[offset : offset + size].tobytes())
        times += batch.time_ns.tolist()
    assert reader.total in (0, reader.done)
    return data, times, [problem.code for problem in reader.problems]


def options(code: int, value: bytes, order: str) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4) + bytes(4)


FLAVOURS = {
    "pcap": pcap(PACKETS),
    "pcap, big-endian": pcap(PACKETS, order=">"),
    "pcap, nanoseconds": pcap(PACKETS, nano=True),
    "pcap, big-endian, nanoseconds": pcap(PACKETS, order=">", nano=True),
    "pcapng": pcapng(PACKETS),
    "pcapng, big-endian": pcapng(PACKETS, order=">"),
    "pcapng, nanoseconds": pcapng(PACKETS, ticks=1_000_000, options=options(9, b"\x09", "<")),
    "pcapng, unknown blocks": pcapng(PACKETS)[:48] + block("<", 0xBAD, b"1234") + pcapng(PACKETS)[48:],
}


@cases("name", FLAVOURS)
def test_every_flavour_gives_the_same_packets(tmp_path: Path, name: str) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(FLAVOURS[name])
    found, times, problems = packets(path)
    assert found == PACKETS
    assert times == [START + n * MILLISECOND for n in range(len(PACKETS))]
    assert not problems


def test_sections_of_either_byte_order_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "two.pcapng"
    path.write_bytes(pcapng(PACKETS[:6]) + pcapng(PACKETS[6:], order=">"))
    assert packets(path)[0] == PACKETS


def test_each_interface_has_its_clock_and_link_type(tmp_path: Path) -> None:
    path = tmp_path / "interfaces.pcapng"
    second = block("<", 1, struct.pack("<HHI", 101, 0, 0) + options(9, b"\x8a", "<"))
    packet = struct.pack("<IIIII", 1, 0, 1536, 4, 4) + b"\x45\x00\x00\x00"
    path.write_bytes(pcapng(PACKETS[:1]) + second + block("<", 6, packet))
    batches = list(open_capture(str(path), Store()).batches())
    assert [link_type for batch in batches for link_type in batch.link_type.tolist()] == [1, 101]
    assert batches[-1].time_ns[-1] == 1_500_000_000  # 1,536 ticks of 2**-10 seconds


def test_simple_and_obsolete_packet_blocks_are_packets(tmp_path: Path) -> None:
    simple = block("<", 3, struct.pack("<I", 5) + b"hello" + bytes(3))
    obsolete = block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 7_000, 5, 5) + b"world" + bytes(3))
    path = tmp_path / "old.pcapng"
    path.write_bytes(pcapng([]) + simple + obsolete)
    data, times, _ = packets(path)
    assert data == [b"hello", b"world"]
    assert times[1] == 7_000_000


@cases(
    ("content", "words"),
    [
        (b"", "empty file"),
        (b"just some text\n", "neither pcap nor pcapng"),
        (b"\xd4\xc3\xb2\xa1", "inside its header"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "byte-order magic"),
    ],
)
def test_a_file_that_is_no_capture_is_reported_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "orders.pcapng"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=words) as caught:
        open_capture(str(path), Store())
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_folders_and_forbidden_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        open_capture(str(tmp_path / "none"), Store())
    with pytest.raises(CaptureError, match="is a directory"):
        open_capture(str(tmp_path), Store())
    with pytest.raises(CaptureError, match="not a file name"):
        open_capture("a\x00b", Store())


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(pcap(PACKETS),))
    writer.start()
    assert packets(pipe)[0] == PACKETS
    writer.join()


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_file_that_ends_in_a_packet_gives_what_is_there_of_it_and_says_so(
    tmp_path: Path, make: Callable[[list[bytes]], bytes]
) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(make(PACKETS)[:-3])
    [*found, last], _, problems = packets(path)
    assert found == PACKETS[:-1]
    assert len(last) >= len(PACKETS[-1]) - 3
    assert PACKETS[-1].startswith(last)
    assert problems == ["file-truncated"]


def test_garbage_after_a_good_part_ends_reading_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "garbage.pcapng"
    path.write_bytes(pcapng(PACKETS) + b"\xff" * 64)
    found, _, problems = packets(path)
    assert found == PACKETS
    assert problems == ["file-damaged"]


@given(
    base=st.sampled_from([pcap(PACKETS), pcapng(PACKETS)]),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    end=st.integers(0, 2000),
)
def test_no_bytes_bring_it_down(tmp_path: Path, base: bytes, changes: list[tuple[int, int]], end: int) -> None:
    data = bytearray(base)
    for at, byte in changes:
        data[at % len(data)] = byte
    path = tmp_path / "mutant"
    path.write_bytes(bytes(data[: end or None]))
    try:
        with Capture([str(path)]) as capture:
            for exchange in capture.exchanges():
                assert exchange.row.number
    except CaptureError as error:
        words = str(error)
    else:
        words = ""
    assert "\n" not in words
