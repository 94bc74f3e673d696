"""Captures and tables in an object store, by moto on loopback, also when a writer is killed. In `make test`: commands
read a bucket as they read a folder, names, ranges, and what is refused; the rest is for `make exhaustive`."""

import gzip
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("moto") is None:  # each worker would import it, for a server in a process of its own
    pytest.skip("NOT TESTED with moto: it is not installed", allow_module_level=True)
pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

import pyarrow.fs

from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import Ring
from dissector.pipeline.ring_follower import Follower, MicroBatchReport
from dissector.pipeline.splits import route, splits
from dissector.tables.delta_log import remove_captures
from dissector.tables.file_systems import opened
from dissector.tables.maintenance import compact, vacuum
from dissector.tables.snapshot import snapshot
from dissector.tables.storage import Storage, StorageError
from dissector.tables.verification import problems
from tests.cli.test_commands import KDISSECT, kdissect
from tests.conftest import PCAPS, some_of
from tests.needs import needs
from tests.object_stores import ObjectStore, object_store, put
from tests.pipeline.contents import contents
from tests.pipeline.test_micro_batch import cut

pytestmark = pytest.mark.slow
FILES = [str(PCAPS / f"{name}.pcapng") for name in ("franz-go", "librdkafka-transactions")]
ODD_NAMES = ("a b", "ü", "a+b=c", "a#b", "a?b&c", "it's", '"q"')
"""Names that are different in a URL."""
EVERY_ODD_NAME = " ".join(ODD_NAMES)


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a new bucket of the store that the environment names."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server.new_bucket()


@cache
def _local() -> dict[str, tuple[int, str]]:
    """What tables of this machine have of the same captures."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        ingest_here(FILES, folder, WriteOptions())
        return contents(Path(folder))


def _counts(folder: str | Path) -> dict[str, int]:
    return {name: rows for name, (rows, _) in contents(folder).items()}


def _uploaded(bucket: str, files: list[str], folder: str = "captures") -> list[str]:
    return [put(bucket, f"{folder}/{Path(each).name}", Path(each).read_bytes()) for each in files]


@pytest.mark.exhaustive
def test_tables_in_a_bucket_equal_those_of_this_machine(bucket: str) -> None:
    out = f"s3://{bucket}/tables"
    assert ingest_here(FILES, out, WriteOptions()).read == len(FILES)
    assert contents(out) == _local()
    assert ingest_here(FILES, out, WriteOptions()).already_ingested == FILES


@pytest.mark.long
@pytest.mark.parametrize("name", some_of([EVERY_ODD_NAME, *ODD_NAMES], EVERY_ODD_NAME))
def test_names_have_no_escapes(bucket: str, name: str) -> None:
    out = f"s3://{bucket}/{name}/tables {name}"
    [url] = _uploaded(bucket, FILES[:1], f"captures {name}")
    assert ingest_here([url], out, WriteOptions()).read == 1
    seen = snapshot(out)
    assert seen is not None
    assert [row["path"] for row in seen.captures] == [url]
    files, _ = pyarrow.fs.FileSystem.from_uri(f"s3://{bucket}")
    assert (
        files.get_file_info(f"{bucket}/{name}/tables {name}/captures/_delta_log").type == pyarrow.fs.FileType.Directory
    )


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a//b", "a[1]", "a\x01"])
def test_names_that_the_log_of_tables_cannot_have_are_refused(bucket: str, name: str) -> None:
    with pytest.raises(StorageError, match="the URL of tables can't have"):
        Storage(f"s3://{bucket}/{name}")


@pytest.mark.exhaustive
def test_commands_read_a_bucket_as_they_read_a_folder(bucket: str, tmp_path: Path) -> None:
    _uploaded(bucket, FILES)
    there, here = f"s3a://{bucket}/tables", str(tmp_path / "tables")
    made = kdissect("ingest", f"s3://{bucket}/captures/", "--out", there)
    assert made.returncode == 0, made.stderr
    assert kdissect("ingest", *FILES, "--out", here).returncode == 0
    for words in (
        ["show", "-f", "json"],
        ["show", "-Y", "api == Fetch && latency > 1ms"],
        ["stats"],
        ["tables", "verify"],
    ):
        command = words[: 2 if words[0] == "tables" else 1]
        rest = words[len(command) :]
        one, other = (kdissect(*command, folder, *rest) for folder in (there, here))
        assert one.returncode == other.returncode == 0, one.stderr
        assert one.stdout == other.stdout


@pytest.mark.exhaustive
def test_captures_of_any_kind_are_read_from_a_bucket(bucket: str, tmp_path: Path) -> None:
    """Compressed, damaged, hex, a log of Kafka's, and none at all."""
    packed, cut, text, none = (tmp_path / name for name in ("j.pcapng.gz", "cut.pcapng", "frame.txt", "none.pcap"))
    data = (PCAPS / "java.pcapng").read_bytes()
    packed.write_bytes(gzip.compress(data))
    cut.write_bytes(data[: len(data) // 3] + bytes(5_000) + data[len(data) // 2 : -7])
    text.write_text(
        "0000  00 00 00 1a 00 12 00 00 00 00 00 01 00 0c 6b 61 66 6b 61 2d 70 79 74 68\n0018  6f 6e 00 00 00 00\n"
    )
    none.write_bytes(b"nothing to be read")
    log = PCAPS / "segments/rdkafka-codecs-0/00000000000000000000.log"
    files = [str(each) for each in (packed, cut, text, none, log)]
    ingest_here(_uploaded(bucket, files, log.parent.name), f"s3://{bucket}/tables", WriteOptions())
    ingest_here(files, str(tmp_path / "tables"), WriteOptions())
    assert _counts(f"s3://{bucket}/tables") == _counts(tmp_path / "tables")
    there, here = contents(f"s3://{bucket}/tables"), contents(tmp_path / "tables")
    for name in ("exchanges", "bodies", "records", "gaps"):
        assert there[name] == here[name]


@pytest.mark.long
@pytest.mark.parametrize("name", ["java", "librdkafka-pipelined", "damaged"])
@pytest.mark.parametrize("size", some_of([3_000, 50_000, 1 << 30], 50_000))
def test_a_range_of_an_object_has_the_packets_that_it_has_in_a_file(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    """Only that range is copied, besides the beginning and what follows."""
    monkeypatch.setattr("dissector.pipeline.splits.HEAD_BYTES", 4_096)
    monkeypatch.setattr("dissector.pipeline.splits.AHEAD_BYTES", 8_192)
    data = (PCAPS / f"{'java' if name == 'damaged' else name}.pcapng").read_bytes()
    if name == "damaged":
        data = data[:20_000] + b"\xff" * 100 + data[20_050:60_000] + bytes(999) + data[60_000:]
    file = tmp_path / "file"
    file.write_bytes(data)

    def packets(path: str) -> list[tuple[int, bytes, bytes]]:
        scan: FileScan = scan_file(path, 7)
        found = splits([scan], size)
        assert size > len(data) or len(found) > 1
        return [
            (block.first, block.heads, block.data) for split in found for _, block in route(split, 1) if block.heads
        ]

    assert packets(put(bucket, "file", data)) == packets(str(file))


@pytest.mark.exhaustive
def test_an_object_that_changes_after_the_scan_is_left_out(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _uploaded(bucket, FILES[:2])
    from dissector.pipeline import ingest_here as module

    def scan_and_change(path: str) -> FileScan:
        scan = scan_file(path)
        if path == first:
            put(bucket, "captures/" + Path(FILES[0]).name, Path(FILES[0]).read_bytes()[:-40])
        return scan

    monkeypatch.setattr(module, "scan_file", scan_and_change)
    result = ingest_here([first, second], f"s3://{bucket}/tables", WriteOptions())
    assert [problem.code for problem in result.problems] == ["file-changed"]
    assert result.read == 1


KILLED = """
import os, signal, sys
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables import delta_log
out, moment, *files = sys.argv[1:]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def report(stage, done, total):
    if stage.startswith(moment):
        die()
commit, committed = delta_log.DeltaTable.create_write_transaction, []
def counted(*given, **named):
    commit(*given, **named)
    if "/_runs/" in given[0].table_uri:
        return die() if moment == "probe" else None
    committed.append(None)
    if moment == f"{len(committed)} commits":
        die()
delta_log.DeltaTable.create_write_transaction = counted
ingest_here(files, out, WriteOptions(), report)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "moments",
    [["3 commits"], ["probe", "reading", "1 commits", "3 commits", "5 commits"]],
    ids=["once", "several times"],
)
def test_a_writer_that_is_killed_anywhere_leaves_nothing_of_a_capture(bucket: str, moments: list[str]) -> None:
    out = f"s3://{bucket}/tables"
    storage = Storage(out)
    for moment in moments:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, out, moment, *FILES], capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not any(rows for rows, _ in contents(out).values())
        assert len(storage.folders("_runs")) == 1, "of this run, and none of an earlier one"
    ingest_here(FILES, out, WriteOptions())
    assert contents(out) == _local()
    assert storage.folders("_runs") == []
    seen = snapshot(storage.uri)
    assert seen is not None
    assert list(problems(storage.uri, seen)) == []


@pytest.mark.exhaustive
def test_two_ingests_at_once_both_land(bucket: str) -> None:
    out = f"s3://{bucket}/tables"
    running = [subprocess.Popen([*KDISSECT, "ingest", file, "--out", out], stderr=subprocess.DEVNULL) for file in FILES]
    assert [process.wait() for process in running] == [0] * len(FILES)
    assert _counts(out) == {name: rows for name, (rows, _) in _local().items()}


@pytest.mark.exhaustive
def test_tables_in_a_bucket_are_compacted_cleaned_up_and_forgotten(bucket: str) -> None:
    out = f"s3://{bucket}/tables"
    for file in FILES:
        ingest_here([file], out, WriteOptions())
    before = contents(out)
    compact(out)
    assert contents(out) == before
    assert vacuum(out, 0)
    assert contents(out) == before
    seen = snapshot(out)
    assert seen is not None
    for row in seen.captures:
        assert remove_captures(out, [row["capture"]])
    assert not any(rows for rows, _ in contents(out).values())


UNREACHABLE = [
    ("s3://no-such-bucket/x", {}, b"no such bucket"),
    ("s3://BUCKET/x", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, b"127.0.0.1"),
    ("foo://BUCKET/x", {}, b"not from foo"),
    ("s3:///x", {}, b"names no bucket"),
    ("hdfs://127.0.0.1:1/x", {"JAVA_HOME": "/nowhere", "HADOOP_HOME": "/nowhere"}, b""),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "settings", "words", "command"),
    some_of(
        [
            pytest.param(*each, command, id=f"{command} {each[0]}")
            for each in UNREACHABLE
            for command in ("ingest", "show", "read")
        ],
        *(f"ingest {url}" for url, *_ in UNREACHABLE),
        "show s3://no-such-bucket/x",
        "show foo://BUCKET/x",
        "read s3://BUCKET/x",
    ),
)
def test_what_cannot_be_reached_is_one_line(
    bucket: str, monkeypatch: pytest.MonkeyPatch, url: str, settings: dict[str, str], words: bytes, command: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    url = url.replace("BUCKET", bucket)
    given = {
        "ingest": ["ingest", FILES[0], "--out", url],
        "show": ["show", url],
        "read": ["ingest", url, "--out", "nowhere"],
    }
    done = kdissect(*given[command])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"kdissect: " + url.encode()), done.stderr
    assert words in done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"\x1b" not in done.stderr


@pytest.mark.long
def test_what_is_not_allowed_is_one_line(bucket: str, server: ObjectStore) -> None:
    with server.locked():
        done = kdissect("ingest", FILES[0], "--out", f"s3://{bucket}/x")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"access" in done.stderr.lower()


@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_a_store_that_loses_commits_is_refused_in_one_line(server: ObjectStore) -> None:
    out = f"s3://{server.new_bucket(ignores_conditions=True)}/tables"
    with pytest.raises(StorageError, match="ignores If-None-Match"):
        ingest_here(FILES, out, WriteOptions())
    files, path = opened(out)
    left = files.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=True))
    assert [each.path for each in left if each.is_file] == []


@pytest.mark.spark
def test_spark_writes_to_a_bucket(bucket: str) -> None:
    """Its tasks use pyarrow: no library of Hadoop's is needed."""
    needs("java")
    _uploaded(bucket, FILES)
    out = f"s3://{bucket}/tables"
    made = kdissect("ingest", f"s3://{bucket}/captures", "--out", out, "--master", "local[2]")
    assert made.returncode == 0, made.stderr
    assert _counts(out) == {name: rows for name, (rows, _) in _local().items()}


@pytest.mark.exhaustive
def test_a_ring_in_a_bucket_is_followed(bucket: str, tmp_path: Path) -> None:
    """An object is closed when it is there, and is read again once it is another."""
    pieces = [plan.path for plan in cut(Path(FILES[0]), tmp_path, 3)]
    ring, reports = Ring(f"s3://{bucket}/ring", tmp_path / "log"), list[MicroBatchReport]()
    with Follower(str(tmp_path / "followed"), WriteOptions(), reports.append, parts=1) as follower:
        for batch, piece in enumerate(pieces):
            _uploaded(bucket, [piece], "ring")
            follower.micro_batch(ring.take(batch))
        assert not ring.take(len(pieces))
        _uploaded(bucket, [FILES[1]], "ring")
        put(bucket, f"ring/{Path(pieces[0]).name}", Path(FILES[1]).read_bytes())
        first, second = ring.take(len(pieces))
        put(bucket, f"ring/{Path(second.path).name}", b"another one")
        follower.micro_batch([first, second])
        follower.end()
    assert [report.files for report in reports] == [1, 1, 1, 1, 0]
    assert [problem.code for problem in reports[3].problems if problem.code == "file-overwritten"]
    ingest_here([*pieces, FILES[1]], str(tmp_path / "whole"), WriteOptions())
    assert _counts(tmp_path / "followed") == _counts(tmp_path / "whole")
