"""What was read of a file does not stay in memory, mapped or spooled."""

import gzip
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.writers import Seen, pcap
from tests.conftest import some_of

pytestmark = pytest.mark.slow

READ = """
import resource, sys
from dissector.capture_session import Capture
with Capture(sys.argv[1:]) as capture:
    for _ in capture.read():
        pass
    print(capture.packets, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
SLACK = 24
"""Megabytes that one reading may need more than another: a batch may end here or there."""


def peak(*paths: Path) -> tuple[int, int]:
    """Packets, and the most megabytes that reading them took."""
    done = subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=True)
    packets, megabytes = done.stdout.split()
    return int(packets), int(megabytes)


def made(path: Path, megabytes: int, *, start: int = 1_700_000_000, packed: bool = False) -> tuple[Path, int]:
    """A capture of so many megabytes of packets that are no TCP; and how many they are."""
    head = pcap([Seen(0, b"", 0)])[:24]
    count = megabytes * 1024
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        file.write(head)
        for n in range(0, count, 64):
            file.write((struct.pack("<IIII", start + n // 64, 0, 1008, 1008) + bytes(1008)) * 64)
    return path, count


@pytest.mark.long
@pytest.mark.parametrize("packed", some_of([False, True], False))
def test_a_file_twice_as_large_takes_no_more_memory(tmp_path: Path, packed: bool) -> None:
    peaks = []
    for megabytes in (60, 150):
        path, count = made(tmp_path / f"{megabytes}", megabytes, packed=packed)
        packets, most = peak(path)
        assert packets == count
        peaks.append(most)
    assert peaks[1] < peaks[0] + SLACK


@pytest.mark.exhaustive
def test_files_that_overlap_take_no_more_memory_when_they_are_larger(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (60, 120):  # batches are as large as they get after 60
        one, count = made(tmp_path / f"{megabytes}", megabytes)
        other, _ = made(tmp_path / f"{megabytes} again", megabytes)
        packets, most = peak(one, other)
        assert packets == 2 * count
        peaks.append(most)
    assert peaks[1] < peaks[0] + SLACK
