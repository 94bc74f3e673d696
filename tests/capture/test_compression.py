"""Compressed captures that are cut, damaged or hostile: what came before is read, and the rest is reported."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError, open_capture
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from tests.capture.test_damage import packets
from tests.capture.test_formats import clean_packets, written
from tests.capture.writers import COMPRESSIONS, members, pcap, pcapng
from tests.cases import cases
from tests.conftest import some_of

LIMITED = Limits(spooled_bytes=32 << 20, skipped_bytes=1 << 18)


def opened(path: Path, limits: Limits = DEFAULT) -> tuple[list[bytes], list[str], list[str]]:
    """Packets, codes and words of problems."""
    reader = open_capture(str(path), Store(), limits=limits)
    found = packets(reader)
    return found, [each.code for each in reader.problems], [each.message for each in reader.problems]


@cases("way", COMPRESSIONS)
def test_what_stands_before_the_end_of_a_cut_file_is_read(tmp_path: Path, way: str) -> None:
    whole = [packet.data for packet in clean_packets()]
    data = members(pcapng(clean_packets()), COMPRESSIONS[way])
    path = written(tmp_path, data[: len(data) * 3 // 4])
    found, codes, words = opened(path)
    assert len(found) > len(whole) // 2
    assert found[:-1] == whole[: len(found) - 1]
    assert whole[len(found) - 1].startswith(found[-1])
    assert codes[0] == "file-truncated"
    assert f"{path}: {way} data" in words[0]


@cases("way", COMPRESSIONS)
def test_damage_is_reported_with_its_place_and_earlier_packets_are_read(tmp_path: Path, way: str) -> None:
    piece = pcapng(clean_packets())
    one = COMPRESSIONS[way](piece)
    data = bytearray(one + COMPRESSIONS[way](pcap(clean_packets())) + one)
    for at in range(len(one) + 4, len(one) + 40):
        data[at] ^= 0xFF
    found, codes, words = opened(written(tmp_path, bytes(data)))
    assert found[: len(clean_packets())] == [packet.data for packet in clean_packets()]
    assert codes[0] == "file-damaged"
    assert f"{way} data damaged at byte " in words[0]
    at = int(words[0].split("at byte ")[1].split(":")[0].replace(",", ""))
    assert len(one) - (1 << 13) <= at <= len(one) + 40


@cases("way", COMPRESSIONS)
def test_trailing_uncompressed_bytes_are_reported(tmp_path: Path, way: str) -> None:
    data = COMPRESSIONS[way](pcapng(clean_packets()))
    found, codes, _ = opened(written(tmp_path, data + b"and so on, and so forth"))
    assert len(found) == len(clean_packets())
    assert codes == ["file-damaged"]
    assert opened(written(tmp_path, data + bytes(512)))[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("way", some_of(COMPRESSIONS, "gzip", "zstd"))
def test_zeros_without_end_are_given_up(tmp_path: Path, way: str) -> None:
    bomb = COMPRESSIONS[way](pcap(clean_packets()) + bytes(24 << 20))
    found, codes, words = opened(written(tmp_path, bomb), LIMITED)
    assert len(found) == len(clean_packets())
    assert codes == ["file-damaged"]
    assert "zeros" in words[0]
    empty = COMPRESSIONS[way](bytes(24 << 20))
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        opened(written(tmp_path, empty), LIMITED)


@pytest.mark.long
@pytest.mark.slow
def test_endless_packets_stop_at_the_disk_limit_which_is_reported(tmp_path: Path) -> None:
    bomb = gzip.compress(pcap(clean_packets() * 40))
    found, codes, words = opened(written(tmp_path, bomb), Limits(spooled_bytes=2 << 20))
    assert 0 < len(found) < 40 * len(clean_packets())
    assert "not-read-on" in codes
    assert any("more than 2,097,152 bytes: the limit of temporary files" in each for each in words)


@pytest.mark.long
@cases("way", ["gzip", "zstd"])
def test_data_that_grow_as_no_capture_does_are_not_read_on(tmp_path: Path, way: str) -> None:
    """The same packet again and again: 400 to 30,000 times."""
    packets = [clean_packets()[0]] * 30_000
    bomb = COMPRESSIONS[way](pcap(packets))
    growth = len(pcap(packets)) // len(bomb)
    assert growth > 100
    path = written(tmp_path, bomb)
    for expansion, is_whole in ((growth + 1, True), (growth // 2, False)):
        found, codes, words = opened(path, Limits(expansion_bytes=1 << 16, expansion=expansion))
        assert ("not-read-on" not in codes) == is_whole
        assert (len(found) == len(packets)) == is_whole
        assert is_whole or any(f"{way} data that expands to more than" in each for each in words)
    assert len(opened(path, Limits(expansion=1))[0]) == len(packets)  # it is small


@pytest.mark.long
@pytest.mark.slow
def test_a_disk_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, gzip.compress(pcap(clean_packets() * 40)))
    real = os.fstatvfs
    left = 1 << 30

    def disk(file: int) -> os.statvfs_result:
        found = list(real(file))
        found[0:5] = (1, 1, 1 << 40, left, left)
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "fstatvfs", disk)
    with pytest.raises(CaptureError, match=r"less than 1\.1 GB would be left on the disk"):
        opened(path)
    left += 1 << 24
    assert opened(path)[1] == []


@given(
    way=st.sampled_from(sorted(COMPRESSIONS)),
    changes=st.lists(st.tuples(st.integers(6, 3000), st.integers(0, 255)), max_size=4),
    cut=st.none() | st.integers(0, 3000),
)
def test_any_change_gives_packets_and_problems_or_one_plain_error(
    tmp_path: Path, way: str, changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(COMPRESSIONS[way](pcapng(clean_packets()[:20])))
    for at, byte in changes:
        data[at % len(data)] = byte
    path = written(tmp_path, bytes(data[:cut]))
    try:
        _, _, words = opened(path)
    except CaptureError as error:
        words = [str(error)]
    assert all(str(path) in each and "\n" not in each for each in words)
