"""Files that change or go away between scan and reading, and what has no room on the disk: reported, and
nothing half done. Without Spark."""

import errno
import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.capture import compression
from dissector.core.finding import Finding
from dissector.core.spool import Spool, SpoolFullError
from dissector.index.shared_state import SharedState
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.lone_files import rows_of_file
from dissector.pipeline.partition_rows import WriteOptions, rows
from dissector.pipeline.splits import InputSplit, route, splits
from dissector.transport.partitions import Partition
from tests.conftest import PCAPS
from tests.pipeline.test_lone_files import LOGS

CHANGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "cut": lambda path: os.truncate(path, path.stat().st_size - 1000),
    "longer": lambda path: path.open("ab").write(b"more"),
    "another of its size": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def problems_of(split: InputSplit) -> list[Finding]:
    """The problems of a split's file."""
    *_, last = route(split, 2)
    findings: list[Finding] = pickle.loads(last.block.data).file_problems
    return findings


@pytest.fixture
def java(tmp_path: Path) -> Path:
    path = tmp_path / "java.pcapng"
    path.write_bytes((PCAPS / "java.pcapng").read_bytes())
    return path


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("size", [1 << 30, 1 << 14], ids=["whole", "in ranges"])
def test_a_replaced_file_is_reported(java: Path, change: str, size: int) -> None:
    found = splits([scan_file(str(java), 100)], size)
    assert (len(found) > 1) == (size < 1 << 30)
    assert not [finding for split in found for finding in problems_of(split)]
    CHANGES[change](java)
    findings = {finding for split in found for finding in problems_of(split)}
    assert [(finding.code, finding.path) for finding in findings] == [("file-changed", str(java))]


def test_of_overlapping_files_the_changed_one_is_reported(java: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcapng"
    other.write_bytes((PCAPS / "java.pcapng").read_bytes() + b"\0")
    [split] = splits([scan_file(str(java)), scan_file(str(other))])
    assert not problems_of(split)
    other.unlink()
    assert [finding.path for finding in problems_of(split)] == [str(other)]


@pytest.mark.parametrize("stored", [True, False], ids=["kafka's own", "a damaged capture"])
def test_a_deleted_file_that_is_read_alone_is_reported(java: Path, tmp_path: Path, *, stored: bool) -> None:
    path = tmp_path / "00000000000000000000.log" if stored else java
    path.write_bytes(LOGS[0].read_bytes() if stored else java.read_bytes()[:3000] + bytes(2000))
    made = scan_file(str(path))
    assert made.is_read_alone
    path.unlink()
    [(_, cells)] = rows_of_file(made, WriteOptions(secrets=True), 1)
    assert isinstance(cells, dict)
    [tally] = pickle.loads(cells["tally"]).shuffled
    assert [finding.path for finding in tally.file_problems] == [str(path)]


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = scan_file(str(tmp_path / "pipe"))
    assert found.unread_reason == f"{tmp_path}/pipe: not a regular file"
    assert not found.digest


def test_an_unreadable_file_is_reported(java: Path) -> None:
    """Asked by somebody who is not root, as root may read all."""
    java.chmod(0)
    child = os.fork()
    if not child:
        problems_of = ""
        try:
            if os.geteuid() == 0:
                os.setuid(65_534)
            problems_of = scan_file(str(java)).unread_reason
        finally:
            os._exit(problems_of != f"{java}: permission denied")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files have no room for more than a block."""

    def pwrite(file: int, data: memoryview, at: int) -> int:
        if at + len(data) > 1 << 13:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data, at)

    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)


@pytest.mark.usefixtures("full")
def test_a_part_without_room_on_the_disk_fails_and_is_not_cut(java: Path) -> None:
    [split] = splits([scan_file(str(java))])
    blocks = [each.block for each in route(split, 1)]
    with pytest.raises(SpoolFullError, match="temporary files: no space left on device"):
        list(rows(blocks, Partition(0, 1), SharedState.merged([]), [], WriteOptions()))


@pytest.mark.usefixtures("full")
def test_files_that_can_t_be_merged_for_want_of_room_fail(java: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcapng"
    other.write_bytes(java.read_bytes() + b"\0")
    [split] = splits([scan_file(str(java)), scan_file(str(other))])
    with pytest.raises(SpoolFullError, match="could not be merged: temporary files: no space left on device"):
        problems_of(split)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("kept", [1_000, 1 << 30], ids=["its beginning", "none of it"])
def test_of_a_compressed_file_without_room_nothing_is_taken(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Whether its beginning had room, or not even that."""
    path = tmp_path / "java.pcapng.gz"
    path.write_bytes(gzip.compress(java.read_bytes()))
    monkeypatch.setattr(compression, "_OUTPUT_BYTES", kept)
    found = scan_file(str(path))
    assert (found.digest, splits([found]), found.is_read_alone) == ("", [], False)
    assert [problem.code for problem in found.problems] == ["not-a-capture"]
    assert "no space left on device" in found.problems[0].message


def test_what_a_spool_could_not_take_it_does_not_show(full: None) -> None:
    from dissector.core.store import Store

    made = Spool(Store(), 1 << 30)
    made.append(b"some")
    with pytest.raises(SpoolFullError):
        made.append(bytes(1 << 14))
    assert made.data.tobytes() == b"some"
