"""Processes of this machine give the tables that one gives, and an ingest ends with them."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.pipeline import ingest_here as module
from dissector.pipeline import worker_processes
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.ingest_here import ingest_here, useful_processes
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.worker_processes import WorkerDiedError
from dissector.tables.data_files import DataFile
from dissector.transport.partitions import Partition
from tests.conftest import PCAPS
from tests.pipeline.contents import contents

NAMES = ("java", "compare-librdkafka-1", "trouble-rebalance-loop", "trouble-slow", "two-brokers")
FILES = [str(PCAPS / f"{name}.pcapng") for name in NAMES if (PCAPS / f"{name}.pcapng").exists()]
LOG = next((PCAPS / "segments").glob("*/*.log"))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_three_processes_give_what_one_gives(tmp_path: Path) -> None:
    """Files that overlap or follow each other, a log, one that is no capture: findings across connections, too."""
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(b"\0" * 50)
    files, stages = [*FILES, str(LOG), str(nothing)], list[str]()
    one = ingest_here(files, str(tmp_path / "one"), WriteOptions(), parts=1)
    three = ingest_here(
        files, str(tmp_path / "three"), WriteOptions(), lambda stage, done, total: stages.append(stage), parts=3
    )
    assert contents(tmp_path / "three") == contents(tmp_path / "one")
    assert replace(three, epoch=one.epoch) == one
    assert stages[1].startswith("reading")
    assert not list((tmp_path / "three" / "_runs").glob("*"))


def test_processes_are_used_where_each_has_enough_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    scans = [scan_file(file) for file in FILES]
    assert useful_processes(scans) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    monkeypatch.setattr(module, "BYTES_PER_PROCESS", sum(scan.block_bytes for scan in scans) // 2)
    assert useful_processes(scans) == 2
    monkeypatch.setattr(module, "BYTES_PER_PROCESS", 1)
    assert useful_processes(scans) == 3
    far = scans[0]
    far.path = f"s3://bucket/{Path(far.path).name}"
    assert useful_processes(scans) == 1


def dies(connection: Connection, partition: Partition) -> None:
    if partition.number:
        os.kill(os.getpid(), signal.SIGKILL)
    work(connection, partition)


def fails(connection: Connection, partition: Partition) -> None:
    vars(worker_processes)["write_rows"] = no_room
    work(connection, partition)


def no_room(*_: object) -> Iterator[DataFile]:
    raise OSError(28, "No space left on device")


work = worker_processes._work


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "error"), [(dies, WorkerDiedError), pytest.param(fails, OSError, marks=pytest.mark.exhaustive)]
)
def test_a_process_that_does_not_come_to_its_end_ends_the_ingest_and_leaves_nothing_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: object, error: type[Exception]
) -> None:
    monkeypatch.setattr(worker_processes, "_work", process)
    with pytest.raises(error):
        ingest_here(FILES[:1], str(tmp_path), WriteOptions(), parts=2)
    assert not any(rows for rows, _ in contents(tmp_path).values())
    assert not multiprocessing.active_children()
