"""Which files of a ring are closed, without a capture program."""

import os
from pathlib import Path

import pytest

from dissector.pipeline.ring import MAX_BYTES, Ring, RingFile


class Clock:
    """Stands still until somebody moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def written(folder: Path, name: str, at: int, data: bytes = b"packets") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    os.utime(folder / name, (at, at))


def names(entries: list[RingFile]) -> list[str]:
    return [Path(entry.path).name for entry in entries]


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    (tmp_path / "ring").mkdir()
    return Ring(str(tmp_path / "ring"), tmp_path / "state" / "files", 60, Clock())


def test_the_newest_file_of_each_ring_is_open(ring: Ring, tmp_path: Path) -> None:
    for name, at in (
        ("eth0-1.pcap", 10),
        ("eth0-2.pcap", 20),
        ("eth1_00001_2026.pcapng", 5),
        ("eth1_00002_2026.pcapng", 7),
    ):
        written(tmp_path / "ring", name, at)
    assert names(ring.take(0)) == ["eth1_00001_2026.pcapng", "eth0-1.pcap"]
    written(tmp_path / "ring", "eth0-3.pcap", 30)
    assert names(ring.take(1)) == ["eth0-2.pcap"]


def test_files_of_the_same_time_are_both_open(ring: Ring, tmp_path: Path) -> None:
    """Clocks of file systems tick: which file was closed cannot be known yet."""
    written(tmp_path / "ring", "a1", 10)
    written(tmp_path / "ring", "a2", 10)
    assert ring.take(0) == []
    written(tmp_path / "ring", "a3", 11)
    assert names(ring.take(0)) == ["a1", "a2"]


def test_a_file_that_did_not_grow_for_a_while_is_closed(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path / "ring", "only.pcap", 10)
    ring = Ring(str(tmp_path / "ring"), tmp_path / "files", 60, clock)
    assert not ring.take(0)
    clock.now = 59
    written(tmp_path / "ring", "only.pcap", 50, b"more packets")
    assert not ring.take(0)
    clock.now = 118
    assert not ring.take(0)
    clock.now = 119
    assert names(ring.take(0)) == ["only.pcap"]


def test_what_is_empty_or_hidden_is_not_given(ring: Ring, tmp_path: Path) -> None:
    for name, data in (("a1", b""), (".a2", b"half copied"), ("a3", b"x"), ("a4", b"x")):
        written(tmp_path / "ring", name, 10 if name != "a4" else 20, data)
    (tmp_path / "ring" / "folder").mkdir()
    assert names(ring.take(0)) == ["a3"]


def test_an_overwritten_file_is_given_again(ring: Ring, tmp_path: Path) -> None:
    written(tmp_path / "ring", "a0", 10)
    written(tmp_path / "ring", "a1", 20)
    assert names(ring.take(0)) == ["a0"]
    assert not ring.take(1)
    written(tmp_path / "ring", "a0", 30)
    assert names(ring.take(1)) == ["a1"]
    written(tmp_path / "ring", "a1", 40)
    assert names(ring.take(2)) == ["a0"]


def test_another_one_goes_on_after_a_crash(ring: Ring, tmp_path: Path) -> None:
    """A micro-batch that was begun has the same files again; one whose log entry was cut short has the others."""
    for number in range(4):
        written(tmp_path / "ring", f"a{number}", 10 * number)
    log = tmp_path / "state" / "files"
    assert names(ring.take(0)) == ["a0", "a1", "a2"]
    written(tmp_path / "ring", "a4", 40)
    again = Ring(str(tmp_path / "ring"), log, 60, Clock())
    assert names(again.take(0)) == ["a0", "a1", "a2"]
    assert names(again.take(1)) == ["a3"]
    written(tmp_path / "ring", "a5", 50)
    log.write_bytes(log.read_bytes()[:-1])
    again = Ring(str(tmp_path / "ring"), log, 60, Clock())
    assert names(again.take(0)) == ["a0", "a1", "a2"]
    assert names(again.take(1)) == ["a3", "a4"]


def test_no_more_is_given_at_a_time_than_fits(ring: Ring, tmp_path: Path) -> None:
    for number in range(5):
        written(tmp_path / "ring", f"a{number}", 10 + number)
        os.truncate(tmp_path / "ring" / f"a{number}", MAX_BYTES // 2)
        os.utime(tmp_path / "ring" / f"a{number}", (10 + number, 10 + number))
    assert [names(ring.take(batch)) for batch in range(3)] == [["a0", "a1"], ["a2", "a3"], []]
