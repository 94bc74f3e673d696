"""What pcapng holds beside packets: kept, bounded, reported."""

import random
import struct
from pathlib import Path

import pytest

from dissector.capture import open_capture
from dissector.capture_session import Capture
from dissector.core.limits import Limits
from dissector.core.store import Store
from tests.capture.test_formats import clean_packets, written
from tests.capture.writers import Seen, enhanced, interface, nanoseconds, option, section, talkative
from tests.traffic import block
from tools.benchmarks.hostile_shapes import SHAPES

END = bytes(4)


def read(path: Path, limits: Limits | None = None) -> Capture:
    """A capture that is read."""
    capture = Capture([str(path)], limits or Limits())
    for _ in capture.read():
        pass
    return capture


def words(capture: Capture) -> list[str]:
    return [problem.message.partition(": ")[2] for problem in capture.problems]


def statistics(order: str, which: int, *, ifdrop: int = 0, osdrop: int = 0) -> bytes:
    options = option(order, 5, struct.pack(order + "Q", ifdrop)) + option(order, 7, struct.pack(order + "Q", osdrop))
    return block(order, 5, struct.pack(order + "III", which, 0, 0) + options + END)


def named(order: str, name: bytes) -> bytes:
    return interface(order, options=option(order, 2, name) + nanoseconds(order))


def test_comments_and_names_are_kept(tmp_path: Path) -> None:
    packets = clean_packets()[:12]
    with read(written(tmp_path, talkative(packets))) as capture:
        assert capture.comments == dict.fromkeys(range(12), "a word")
        assert capture.pipeline.remarks == ["a word"]
        assert capture.pipeline.host_name("127.0.0.1") == "broker-1"


@pytest.mark.parametrize("order", ["<", ">"])
def test_comments_of_a_packet_are_lines_behind_other_options(tmp_path: Path, order: str) -> None:
    options = option(order, 2, bytes(4)) + option(order, 1, b"one") + option(order, 1, "zw\u00f6lf".encode()) + END
    plain, odd = Seen(1, b"abcde", 5), Seen(2, b"abcdef", 6)
    data = section(order) + interface(order, options=nanoseconds(order))
    data += enhanced(plain, 1, order) + enhanced(odd, 2, order, options=options)
    with read(written(tmp_path, data)) as capture:
        assert capture.comments == {1: "one\nzwölf"}


@pytest.mark.parametrize("order", ["<", ">"])
def test_counters_of_an_interface_grow_and_those_of_interfaces_add_up(tmp_path: Path, order: str) -> None:
    part = section(order) + named(order, b"lo") + named(order, b"eth0")
    part += statistics(order, 0, ifdrop=3) + statistics(order, 0, ifdrop=5, osdrop=2) + statistics(order, 1, osdrop=1)
    with read(written(tmp_path, part * 2)) as capture:
        assert words(capture) == [
            "14 packets were dropped by the kernel while capturing (interface lo)",
            "2 packets were dropped by the kernel while capturing (interface eth0)",
        ]


def test_drop_counts_of_packets_are_summed(tmp_path: Path) -> None:
    packet = Seen(1, b"abcd", 4)
    dropped = option("<", 4, struct.pack("<Q", 21)) + END
    data = section() + interface() + enhanced(packet, 1, options=dropped) * 2
    with read(written(tmp_path, data)) as capture:
        assert words(capture) == ["42 packets were dropped by the kernel while capturing"]


def test_secrets_that_are_not_used_are_counted(tmp_path: Path) -> None:
    blocks = [block("<", 10, struct.pack("<II", kind, 4) + b"ABCD") for kind in (0x544C534B, 0x5353484B, 0x544C534B)]
    data = section() + interface() + b"".join(blocks)
    with read(written(tmp_path, data)) as capture:
        assert words(capture) == ["1 block of secrets not used: no TLS, or too large"]
    with read(written(tmp_path, data), Limits(key_log_bytes=7)) as capture:
        assert words(capture) == ["2 blocks of secrets not used: no TLS, or too large"]


def test_more_comments_than_are_kept_are_counted(tmp_path: Path) -> None:
    packets = clean_packets()[:12]
    with read(written(tmp_path, talkative(packets)), Limits(notes=5, note_bytes=3)) as capture:
        assert capture.pipeline.remarks == ["a w"]
        assert capture.comments == dict.fromkeys(range(4), "a w")
        assert words(capture)[-1] == "8 more comments are not kept"


def test_an_interface_whose_lengths_differ_is_taken(tmp_path: Path) -> None:
    packets = clean_packets()[:6]
    described = interface(options=nanoseconds())[:-4] + b"\xff" * 4
    data = section() + described + b"".join(enhanced(packet, packet.time_ns) for packet in packets)
    with read(written(tmp_path, data)) as capture:
        assert capture.start_ns == packets[0].time_ns
        assert words(capture) == ["1 blocks have two different lengths; the first is packet 1"]


def test_a_block_whose_lengths_differ_is_read_and_reported(tmp_path: Path) -> None:
    packets = clean_packets()[:6]
    blocks = [bytearray(enhanced(packet, packet.time_ns)) for packet in packets]
    for n in (2, 4):
        blocks[n][-4:] = struct.pack("<I", 12)
    data = section() + interface(options=nanoseconds()) + b"".join(blocks)
    with read(written(tmp_path, data)) as capture:
        assert capture.packets == 6
        assert words(capture) == ["2 blocks have two different lengths; the first is packet 3"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", ["an interface a packet", "a section a packet", "a comment a packet", "names of hosts"]
)
def test_packets_between_blocks_that_describe_come_in_few_batches(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcapng"
    path.write_bytes(SHAPES[shape](200_000, random.Random(1)))
    batches = [len(batch) for batch in open_capture(str(path), Store()).batches()]
    assert sum(batches) > 700
    assert len(batches) == 1


def test_names_of_interfaces_that_dropped_packets_are_shown_in_one_line_each_and_some_of_many(tmp_path: Path) -> None:
    data = section() + named("<", b"a\nb\x1b[2J") + statistics("<", 0, osdrop=3)
    with read(written(tmp_path, data)) as capture:
        assert words(capture) == ["3 packets were dropped by the kernel while capturing (interface a␊b␛[2J)"]
    data += b"".join(statistics("<", number, ifdrop=2) for number in range(1, 500))
    with read(written(tmp_path, data)) as capture:
        assert len(words(capture)) == 21
        assert words(capture)[-1] == "960 packets were dropped by the kernel while capturing (480 more interfaces)"
