"""Tables without bodies: what other tables have is there as always, and what needs bodies says so in one line."""

import shlex
from pathlib import Path

import pytest

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, some_of
from tests.pipeline.contents import rows_that_count

pytestmark = pytest.mark.slow

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
NAMES = ("java", "java-sasl-plain")
FILES = [str(PCAPS / f"{name}.pcapng") for name in NAMES]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Tables with bodies, and without."""
    made = tmp_path_factory.mktemp("bodies")
    for bodies in (True, False):
        ingest_here(FILES, str(made / str(bodies)), WriteOptions(bodies=bodies))
    return str(made / "True"), str(made / "False")


@pytest.mark.long
def test_all_other_tables_are_the_same(folders: tuple[str, str]) -> None:
    with_bodies, without = (rows_that_count(folder) for folder in folders)
    for name, rows in without.items():
        kept = [{key: cell for key, cell in row.items() if key not in ("epoch", "options")} for row in rows]
        wanted = [{key: row[key] for key in kept[0]} for row in with_bodies[name]] if kept else []
        assert sorted(map(repr, kept)) == sorted(map(repr, wanted)), name
    assert not without["bodies"]
    assert with_bodies["bodies"]
    assert len(without["exchanges"]) == len(with_bodies["exchanges"])
    assert {row["options"] for row in without["captures"]} == {"no-bodies"}


def several(*lines: str, chosen: tuple[str, ...]) -> pytest.MarkDecorator:
    """Commands without their captures; those chosen stay in `make test`."""
    return pytest.mark.parametrize("line", some_of(lines, *chosen))


@pytest.mark.long
@several(
    "show", "show -f csv", "show --fields number,api,client_id,latency,info", "show -Y 'api == Fetch && latency > 1ms'",
    "show -Y 'severity == error'", "show -Y 'acks == -1'",
    "stats --by client_id", "stats --by api", "stats --by server -Y 'api == Produce'",
    chosen=("show -f csv", "show -Y 'acks == -1'", "stats --by server -Y 'api == Produce'"),
)  # fmt: skip
def test_what_columns_have_is_answered(folders: tuple[str, str], line: str) -> None:
    command, *rest = shlex.split(line)
    wanted, found = kdissect(command, *FILES, *rest), kdissect(command, folders[1], *rest)
    assert found.returncode == wanted.returncode, found.stderr
    assert found.stdout == wanted.stdout


@pytest.mark.long
@several(
    "show -f json", "show -f tree", "show --fields request.max_wait_ms", "show -Y 'request.topics.name == orders'",
    "show -Y 'record.key exists'", "stats", "stats -f json", "stats --by topic",
    "stats --by client_id -Y 'request.host exists'", "show -Y 'brokers.port == 9092'", "show --fields number,findings",
    chosen=("show -f json", "show -Y 'record.key exists'", "stats", "stats --by topic"),
)  # fmt: skip
def test_what_needs_bodies_says_so(folders: tuple[str, str], line: str) -> None:
    command, *rest = shlex.split(line)
    wanted, found = kdissect(command, *FILES, *rest), kdissect(command, folders[1], *rest)
    assert wanted.returncode in (0, 1), wanted.stderr
    assert (found.returncode, found.stdout) == (2, b"")
    [said] = found.stderr.decode().splitlines()
    assert said.endswith("ingested with --no-bodies, but this needs bodies: ingest again without it")


@pytest.mark.long
def test_a_comparison_names_the_capture_that_lacks_them(folders: tuple[str, str]) -> None:
    _, without = folders
    done = kdissect("diff", *(f"{without}:{name}" for name in NAMES))
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == (
        f"kdissect: {FILES[0]}: ingested with --no-bodies, but this needs bodies: ingest again without it"
    )


@pytest.mark.long
def test_upkeep_keeps_them_without_bodies_and_finds_nothing_missing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert kdissect("ingest", FILES[0], "--out", folder, "--no-bodies").returncode == 0
    ingest_here(FILES[1:], folder, WriteOptions())
    assert kdissect("tables", "verify", folder).returncode == 0
    assert kdissect("tables", "replace", folder, NAMES[0]).returncode == 0
    assert {row["options"] for row in rows_that_count(folder)["captures"]} == {"", "no-bodies"}
    assert kdissect("show", folder, "-f", "json").returncode == 2
    ingest_here(FILES, folder, WriteOptions())
    assert kdissect("show", folder, "-f", "json").returncode == 0


def test_frames_need_bodies(tmp_path: Path) -> None:
    done = kdissect("ingest", FILES[0], "--out", str(tmp_path), "--no-bodies", "--frames")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"--no-bodies" in done.stderr
