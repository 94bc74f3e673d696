"""`kdissect tables upkeep`: each step is the one of the command for it, in an order that loses nothing."""

import os
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.cli.errors import NEGATIVE
from dissector.cli.table_upkeep import upkeep
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.run import Run
from dissector.tables.snapshot import seen_tables
from dissector.tables.storage import Storage
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.pipeline.contents import contents
from tests.tables.copied import copy_tables
from tests.traffic import conversation, ethernet, exchanges, pcap

pytestmark = pytest.mark.slow

DAY = 86_400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables with captures that ended 9 and 11 days ago."""
    here = tmp_path_factory.mktemp("made")
    tables = copy_tables(here / "tables")
    packets = [ethernet(each) for each in conversation(exchanges(1))]
    for days in (9, 11):
        path = here / f"{days}.pcap"
        path.write_bytes(pcap(packets, start=int(time.time()) - days * DAY))
        ingest_here([str(path)], str(tables), WriteOptions())
    return tables


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(made, tmp_path / "tables"))


def captures(folder: Path) -> set[str]:
    return {Path(row["path"]).stem for row in seen_tables(str(folder)).captures}


def every_file(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if each.is_file()}


def steps(folder: Path, *words: str, code: int = 0) -> list[str]:
    done = kdissect("tables", "upkeep", str(folder), *words)
    assert (done.returncode, done.stdout) == (code, b"")
    return [line.removeprefix(f"{folder}: ") for line in done.stderr.decode().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("age", "left"),
    [
        ("10d", {"9"}),
        ("12d", {"9", "11"}),
        pytest.param("8d", set(), marks=pytest.mark.exhaustive),
        pytest.param("240h", {"9"}, marks=pytest.mark.exhaustive),
    ],
)
def test_captures_that_ended_longer_ago_are_forgotten(folder: Path, age: str, left: set[str]) -> None:
    forget, compact, vacuum = steps(folder, "--keep", age, "--older-than", "0")
    gone = 2 - len(left)
    assert forget.startswith(f"forget: {gone} capture{'' if gone == 1 else 's'} that ended before ")
    assert compact.startswith("compact: ")
    assert vacuum.startswith("vacuum: ")
    assert captures(folder) == left


@pytest.mark.long
def test_without_an_age_nothing_is_forgotten(folder: Path) -> None:
    before = contents(folder)
    compact, vacuum = steps(folder, "--older-than", "0")
    assert "instead of" in compact
    assert "removed" in vacuum
    assert not vacuum.startswith("vacuum: 0 files"), "those of which larger ones were made"
    assert contents(folder) == before
    assert steps(folder, "--older-than", "0")[1] == "vacuum: 0 files older than 0 hours removed"


@pytest.mark.long
def test_a_dry_run_changes_nothing(folder: Path) -> None:
    before, files = contents(folder), every_file(folder)
    said = steps(folder, "--keep", "10d", "--older-than", "0", "--dry-run")
    assert [line.split(":")[0] for line in said] == ["forget", "compact", "vacuum"]
    assert all("would be" in line for line in said)
    assert said[0].startswith("forget: 1 capture ")
    assert (contents(folder), every_file(folder)) == (before, files)


@pytest.mark.long
def test_files_stay_while_an_ingest_is_at_work(folder: Path) -> None:
    storage = Storage(str(folder))
    run = Run.new()
    storage.mark(run.folder)
    uncommitted = folder / "gaps" / f"{run.epoch}-x.parquet"
    uncommitted.write_bytes(b"not in the log yet")
    os.utime(uncommitted, (1, 1))
    assert upkeep(str(folder), "10d", 0, dry_run=False) == NEGATIVE
    assert captures(folder) == {"9"}, "the other steps were done"
    assert uncommitted.exists()
    storage.remove(run.folder)
    assert upkeep(str(folder), None, 0, dry_run=False) == 0
    assert not uncommitted.exists()


@pytest.mark.long
def test_readers_of_iceberg_have_their_files_afterwards(folder: Path) -> None:
    pytest.importorskip("pyiceberg", reason="NOT TESTED with pyiceberg: it is not installed")
    from tests.tables.test_iceberg import SOME, assert_equal, write

    assert [line.split(":")[0] for line in steps(folder)] == ["compact", "vacuum"], "nobody asked for it"
    write(folder)
    ingest_here([str(PCAPS / "trouble-slow.pcapng")], str(folder), WriteOptions())
    assert "iceberg" in [line.split(":")[0] for line in steps(folder, "--keep", "10d", "--older-than", "0")]
    assert_equal(folder, SOME)


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5d", "30m", "", "\u0663d", "999999d"])
def test_an_age_that_is_none_is_one_line(folder: Path, age: str) -> None:
    before = every_file(folder)
    done = kdissect("tables", "upkeep", str(folder), f"--keep={age}")
    assert (done.returncode, done.stdout) == (2, b"")
    words = "a number of days or hours is needed, such as 30d or 12h"
    assert done.stderr.decode() == f"kdissect: --keep {age}: {words}\n"
    assert every_file(folder) == before
