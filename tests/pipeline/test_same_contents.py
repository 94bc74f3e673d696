"""Captures with the contents of others that are in the tables: known, whatever their format; told under which name."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dissector.pipeline import ingest_here as ingest_here_module
from dissector.pipeline.commit import commit
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.ingest import IngestJob, IngestResult
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.splits import FilesChangedError, changed_file
from dissector.tables.delta_log import live_captures
from tests.capture.writers import COMPRESSIONS
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.pipeline.contents import contents, rows_that_count
from tests.traffic import conversation, ethernet, exchanges, pcap, pcapng

PACKETS = [ethernet(packet) for packet in conversation(exchanges(24))]


def made(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return made(tmp_path, "a.pcap", pcap(PACKETS))


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return made(tmp_path, "a.pcap.gz", gzip.compress(pcap(PACKETS)))


def ingested(folder: Path, *files: Path, **options: bool) -> IngestResult:
    again = options.pop("again", False)
    return ingest_here([str(file) for file in files], str(folder / "tables"), WriteOptions(**options), again=again)


def counted(folder: Path) -> tuple[list[str], int]:
    """Names of captures, and the number of exchanges."""
    rows = rows_that_count(folder / "tables")
    return sorted(Path(row["path"]).name for row in rows["captures"]), len(rows["exchanges"])


@pytest.mark.long
@pytest.mark.parametrize("way", ["one by one", "in one run"])
def test_a_capture_and_then_the_same_compressed_are_the_capture(tmp_path: Path, way: str) -> None:
    capture = made(tmp_path, "a.pcap", pcap(PACKETS))
    packed = made(tmp_path, "a.pcap.gz", gzip.compress(pcap(PACKETS)))
    folder = tmp_path / "tables"
    told = f"{packed}: already in the tables as {capture}"
    if way == "in one run":
        done = kdissect("ingest", str(capture), str(packed), "--out", str(folder))
        assert (done.returncode, done.stderr.decode().splitlines()[0]) == (0, told)
    else:
        assert kdissect("ingest", str(capture), "--out", str(folder)).returncode == 0
        done = kdissect("ingest", str(packed), "--out", str(folder))
        assert (done.returncode, done.stderr.decode()) == (0, f"{told}\n")
    assert counted(tmp_path) == (["a.pcap"], 24)


@pytest.mark.long
def test_of_the_same_file_no_other_name_is_told(tmp_path: Path, capture: Path) -> None:
    ingested(tmp_path, capture)
    done = kdissect("ingest", str(capture), "--out", str(tmp_path / "tables"))
    assert done.stderr.decode() == f"{capture}: already in the tables\n"


@pytest.mark.long
@pytest.mark.slow
def test_a_replay_is_another_capture(tmp_path: Path, capture: Path) -> None:
    ingested(tmp_path, capture)
    later = made(tmp_path, "b.pcap", pcap(PACKETS, start=1_700_000_060))
    assert not ingested(tmp_path, later).already_ingested
    assert counted(tmp_path) == (["a.pcap", "b.pcap"], 48)


@pytest.mark.slow
def test_empty_captures_are_not_the_same(tmp_path: Path) -> None:
    result = ingested(tmp_path, made(tmp_path, "a.pcap", pcap([])), made(tmp_path, "b.pcap", pcap([], order=">")))
    assert (result.already_ingested, counted(tmp_path)) == ([], (["a.pcap", "b.pcap"], 0))


@pytest.mark.long
@pytest.mark.slow
def test_a_compressed_log_is_the_log(tmp_path: Path) -> None:
    log = next((PCAPS / "segments").glob("*/*.log"))
    ingested(tmp_path, log)
    packed = made(tmp_path, f"{log.name}.zst", COMPRESSIONS["zstd"](log.read_bytes()))
    assert ingested(tmp_path, packed).known_as == {str(packed): str(log)}


@pytest.mark.long
@pytest.mark.slow
def test_with_other_options_it_is_in_place_of_the_other_file(tmp_path: Path, capture: Path, packed: Path) -> None:
    ingested(tmp_path, capture)
    done = kdissect("ingest", str(packed), "--frames", "--out", str(tmp_path / "tables"))
    told = f"{packed}: replaces {capture}, which has the same content"
    assert (done.returncode, done.stderr.decode().splitlines()[0]) == (0, told)
    assert counted(tmp_path) == (["a.pcap.gz"], 24)
    only = tmp_path / "only"
    only.mkdir()
    ingested(only, packed, frames=True)
    assert contents(tmp_path / "tables") == contents(only / "tables")


@pytest.mark.long
@pytest.mark.slow
def test_of_two_ingests_at_a_time_one_counts(
    tmp_path: Path, capture: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one began later, and committed first."""

    def commit_after_the_other(*args: object) -> None:
        monkeypatch.setattr(ingest_here_module, "commit", commit)
        ingested(tmp_path, packed)
        commit(*args)

    monkeypatch.setattr(ingest_here_module, "commit", commit_after_the_other)
    ingested(tmp_path, capture)
    assert counted(tmp_path) == (["a.pcap.gz"], 24)
    assert {len(DeltaTable(tmp_path / "tables" / name).to_pyarrow_table()) for name in ("exchanges", "bodies")} == {24}


@pytest.mark.long
@pytest.mark.slow
def test_if_a_file_has_changed_the_other_with_its_contents_is_ingested(
    tmp_path: Path, capture: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = ingest_here_module._Job.execute
    runs: list[list[str]] = []

    def changed_once(job: IngestJob) -> dict[str, int]:
        runs.append([scan.path for scan in job._scans])
        if len(runs) == 1:
            raise FilesChangedError([changed_file(str(capture))])
        return execute(job)

    monkeypatch.setattr(ingest_here_module._Job, "execute", changed_once)
    result = ingested(tmp_path, capture, packed)
    assert runs == [[str(capture)], [str(packed)]]
    assert (result.already_ingested, [problem.code for problem in result.problems]) == ([], ["file-changed"])
    assert counted(tmp_path) == (["a.pcap.gz"], 24)


@pytest.mark.long
@pytest.mark.slow
def test_problems_of_a_file_with_known_contents_are_told(tmp_path: Path, capture: Path) -> None:
    """They are not those of the other file."""
    ingested(tmp_path, capture)
    damaged = made(tmp_path, "b.pcap", pcap(PACKETS) + b"\0\1\2")
    first = ingested(tmp_path, damaged)
    assert first.known_as == {str(damaged): str(capture)}
    assert [problem.code for problem in first.problems] == [
        problem.code for problem in scan_file(str(damaged)).problems
    ]
    assert first.problems


@pytest.mark.long
@pytest.mark.slow
def test_tables_of_a_version_without_it_get_it(tmp_path: Path, capture: Path, packed: Path) -> None:
    """Rows of that version are not known by it, until they are ingested again."""
    ingested(tmp_path, capture)
    table = DeltaTable(tmp_path / "tables" / "captures")
    old: pa.Table = table.to_pyarrow_table().drop_columns(["contents"])
    write_deltalake(tmp_path / "tables" / "captures", old, mode="overwrite", schema_mode="overwrite")
    assert ingested(tmp_path, capture).already_ingested
    ingested(tmp_path, capture, again=True)
    [row] = live_captures(f"file://{tmp_path}/tables")
    assert len(row["contents"]) == 64
    assert ingested(tmp_path, packed).known_as == {str(packed): str(capture)}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_it_does_not_depend_on_processes(tmp_path: Path) -> None:
    files = [made(tmp_path, "a.pcap", pcap(PACKETS)), made(tmp_path, "b.pcapng", pcapng([PACKETS[0]]))]

    def found(name: str, parts: int, some: Sequence[Path]) -> dict[str, str]:
        ingest_here([str(file) for file in some], str(tmp_path / name), WriteOptions(), parts=parts)
        return {row["path"]: row["contents"] for row in live_captures(f"file://{tmp_path}/{name}")}

    scans: list[FileScan] = [scan_file(str(file)) for file in files]
    expected = {scan.path: scan.contents for scan in scans}
    assert found("one", 1, files) == found("two", 2, files[::-1]) == expected
