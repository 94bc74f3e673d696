"""The digest of packets: the container makes no difference, everything about the packets does."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.packet_digest import PacketDigest
from dissector.core.batches import PacketBatch
from dissector.pipeline.file_scan import FileScan, scan_file
from tests.capture.writers import COMPRESSIONS
from tests.conftest import PCAPS
from tests.traffic import block, pcap, pcapng

PACKETS = [bytes([number]) * (60 + number) for number in range(9)]


def scanned(folder: Path, data: bytes) -> FileScan:
    path = folder / "capture"
    path.write_bytes(data)
    return scan_file(str(path))


def with_comment(data: bytes) -> bytes:
    """A pcapng file with a comment on its section, and a block that nobody knows."""
    size, comment = struct.unpack_from("<I", data, 4)[0], b"recorded on the broker  "
    options = struct.pack("<HH", 1, len(comment)) + comment + bytes(4)
    return block("<", 0x0A0D0D0A, data[8 : size - 4] + options) + data[size:] + block("<", 0xBAD, b"what")


SAME: dict[str, Callable[[], bytes]] = {
    "big-endian pcap": lambda: pcap(PACKETS, order=">"),
    "nanoseconds": lambda: pcap(PACKETS, nano=True),
    "pcapng": lambda: pcapng(PACKETS),
    "big-endian pcapng": lambda: pcapng(PACKETS, order=">"),
    "comments and unknown blocks": lambda: with_comment(pcapng(PACKETS)),
    "nanoseconds in pcapng": lambda: pcapng(PACKETS, options=struct.pack("<HHB3xI", 9, 1, 9, 0), ticks=1_000_000),
    **{way: lambda compress=compress: compress(pcap(PACKETS)) for way, compress in COMPRESSIONS.items()},
    "gzip of pcapng": lambda: COMPRESSIONS["gzip"](pcapng(PACKETS)),
    "another snap length that cuts nothing": lambda: pcap(PACKETS, snaplen=500),
}


@pytest.mark.parametrize("name", SAME)
def test_the_container_makes_no_difference(tmp_path: Path, name: str) -> None:
    expected, found = scanned(tmp_path, pcap(PACKETS)), scanned(tmp_path, SAME[name]())
    assert len(found.contents) == 64
    assert (found.contents, found.packets) == (expected.contents, len(PACKETS))
    assert found.digest != expected.digest


def changed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


OTHER = {
    "link type": pcap(PACKETS, link_type=113),
    "order": pcap([PACKETS[1], PACKETS[0], *PACKETS[2:]]),
    "one packet less": pcap(PACKETS[:-1]),
    "one packet more": pcap([*PACKETS, b""]),
    "time of all": pcap(PACKETS, start=1_700_000_001),
    "time of one": changed(pcap(PACKETS), 24 + 4),
    "length on the wire": changed(pcap(PACKETS), 24 + 12),
    "snap length": pcap(PACKETS, snaplen=67),
    "first byte": changed(pcap(PACKETS), 24 + 16),
    "last byte": changed(pcap(PACKETS), len(pcap(PACKETS)) - 1),
    "where packets end": pcap([PACKETS[0] + PACKETS[1][:1], PACKETS[1][1:], *PACKETS[2:]]),
}


@pytest.mark.parametrize("name", OTHER)
def test_everything_about_the_packets_makes_one(tmp_path: Path, name: str) -> None:
    found = scanned(tmp_path, OTHER[name])
    assert len(found.contents) == 64
    assert found.contents != scanned(tmp_path, pcap(PACKETS)).contents


def test_secrets_in_the_file_make_one(tmp_path: Path) -> None:
    """They decide what can be read of the packets."""
    secrets = b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n"
    body = struct.pack("<II", 0x544C534B, len(secrets)) + secrets
    found = scanned(tmp_path, pcapng(PACKETS) + block("<", 10, body + bytes(-len(body) % 4)))
    assert found.secrets
    assert found.contents not in ("", scanned(tmp_path, pcap(PACKETS)).contents)


@pytest.mark.parametrize("data", [pcap([]), b"0000  00 00 00 0c 00 12 00 03 00 00 00 01 00 01 61 00\n", b"no capture"])
def test_what_has_no_packets_with_times_has_none(tmp_path: Path, data: bytes) -> None:
    """Two empty files are not the same capture, nor two texts whose times are made up."""
    assert not scanned(tmp_path, data).contents


@pytest.mark.parametrize("way", ["gzip", "zstd"])
def test_a_log_has_that_of_its_bytes(tmp_path: Path, way: str) -> None:
    log = next((PCAPS / "segments").glob("*/*.log"))
    plain, packed = scan_file(str(log)), scanned(tmp_path, COMPRESSIONS[way](log.read_bytes()))
    assert plain.form == packed.form == "log"
    assert (plain.contents, packed.contents) == (plain.digest, plain.digest)


@given(most=st.integers(1, 10))
def test_the_size_of_batches_makes_no_difference(tmp_path_factory: pytest.TempPathFactory, most: int) -> None:
    path = tmp_path_factory.mktemp("digest") / "capture"
    path.write_bytes(pcap(PACKETS))
    assert scan_file(str(path), most).contents == scan_file(str(path)).contents


def test_large_batches_are_copied_in_pieces(tmp_path: Path) -> None:
    """Cut anywhere, also inside of what is copied at a time."""
    data = np.frombuffer(np.random.default_rng(7).bytes(3 << 20), np.uint8)
    captured = np.array([0, 1, 700_000, 0, 1_200_000, 5, 1_000_000, 0], np.int64)
    offset = np.concatenate(([0], np.cumsum(captured)[:-1]))
    numbers = np.arange(len(captured))

    def batch(first: int, end: int) -> PacketBatch:
        rows = slice(first, end)
        return PacketBatch(
            data, 0, numbers[rows], numbers[rows], offset[rows], captured[rows], captured[rows],
            np.ones(end - first, np.uint16),
        )  # fmt: skip

    whole = PacketDigest()
    whole.add(batch(0, len(captured)))
    for cut in range(1, len(captured)):
        halves = PacketDigest()
        halves.add(batch(0, cut))
        halves.add(batch(cut, len(captured)))
        assert halves.value(b"") == whole.value(b"")
