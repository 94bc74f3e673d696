"""Files that overlap in time, as those of several brokers do: their rows are those of one capture, and each says which
file has its packet, and the number of the packet there."""

import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

from hypothesis import given
from hypothesis import strategies as st

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.delta_log import remove_captures
from tests.capture.writers import Seen, pcapng, seen
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, costly
from tests.pipeline.contents import rows_that_count
from tests.pipeline.without_spark import tables

PACKETS = seen(PCAPS / "java.pcapng")
KEYED = ("exchanges", "bodies", "partitions", "groups", "records", "batches", "findings", "gaps", "connections")


class Dealt(NamedTuple):
    """A recording whose packets were dealt out to files."""

    paths: list[str]
    captures: list[str]
    """Names of the files in the tables."""
    number: dict[tuple[str, int], int]
    """Number of each packet in the recording, by its capture and its number there."""


def dealt(folder: Path, which: list[int]) -> Dealt:
    """Each packet goes to the file with the number that `which` has at its place."""
    found = Dealt([], [], {})
    for file in sorted(set(which)):
        places = [at for at, number in enumerate(which) if number == file]
        packets: list[Seen] = [PACKETS[at] for at in places]
        path = folder / f"broker-{file}.pcapng"
        path.write_bytes(pcapng(packets))
        capture = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        found.paths.append(str(path))
        found.captures.append(capture)
        found.number.update({(capture, n): at + 1 for n, at in enumerate(places, 1)})
    return found


def in_recording(row: dict[str, Any], of: Dealt) -> tuple[Any, ...]:
    """What identifies a row, with the packet's number in the recording."""
    return (
        of.number[row["capture"], row["packet"]],
        row.get("start"),
        row.get("code"),
        row.get("partition"),
        row.get("offset"),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dealt, dict[str, list[dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("whole")
    of = dealt(folder, [0] * len(PACKETS))
    ingest_here(of.paths, str(folder / "tables"), WriteOptions())
    return of, rows_that_count(folder / "tables")


@pytest.mark.exhaustive
@pytest.mark.slow
@costly(3)
@given(st.integers(2, 4), st.integers(1, 40), st.randoms(use_true_random=False))
def test_each_row_names_the_file_and_the_packet(
    tmp_path_factory: pytest.TempPathFactory, whole: tuple[Dealt, dict[str, list[dict[str, Any]]]], ways: int, run: int,
    chance: random.Random,
) -> None:  # fmt: skip
    """However many packets come from one broker before another has one."""
    which = [chance.randrange(ways) for _ in range(-(-len(PACKETS) // run)) for _ in range(run)][: len(PACKETS)]
    of = dealt(tmp_path_factory.mktemp("dealt"), which)
    one, rows = whole
    for made in (tables(of.paths), tables(of.paths, parts=3, size=10_000, most=5, seed=run)):
        for name in KEYED:
            expected = sorted(map(repr, (in_recording(row, one) for row in rows[name])))
            assert sorted(map(repr, (in_recording(row, of) for row in made[name]))) == expected, name


@pytest.mark.long
@pytest.mark.slow
def test_rows_do_not_depend_on_where_files_are_cut(tmp_path: Path) -> None:
    of = dealt(tmp_path, [n // 7 % 3 for n in range(len(PACKETS))])
    one, many = tables(of.paths), tables(of.paths, parts=2, size=10_000, most=20)
    assert one.keys() == many.keys() >= {"connections", "exchanges", "findings", "records"}
    for name in one.keys() - {"tallies", "plans"}:
        assert Counter(map(repr, one[name])) == Counter(map(repr, many[name])), name


@pytest.mark.long
@pytest.mark.slow
def test_tables_show_them_as_one_capture(tmp_path: Path) -> None:
    of = dealt(tmp_path, [n % 3 for n in range(len(PACKETS))])
    out = str(tmp_path / "tables")
    ingest_here(of.paths, out, WriteOptions())
    for words in (["show", "-f", "json"], ["show", "-Y", "api == Fetch"], ["stats"]):
        there, files = kdissect(words[0], out, *words[1:]), kdissect(words[0], *of.paths, *words[1:])
        assert there.returncode == files.returncode == 0
        assert there.stdout == files.stdout
    rows = rows_that_count(tmp_path / "tables")
    assert {row["merged_with"] for row in rows["captures"]} == {of.captures[0]}
    assert len({row["capture"] for row in rows["exchanges"]}) == 3


@pytest.mark.exhaustive
@pytest.mark.slow
def test_forgetting_one_of_them_leaves_the_rows_of_the_others(tmp_path: Path) -> None:
    of = dealt(tmp_path, [n % 2 for n in range(len(PACKETS))])
    out = str(tmp_path / "tables")
    ingest_here(of.paths, out, WriteOptions())
    before = rows_that_count(tmp_path / "tables")
    assert remove_captures(f"file://{out}", [of.captures[0]])
    after = rows_that_count(tmp_path / "tables")
    for name in KEYED:
        left = [row for row in before[name] if row["capture"] == of.captures[1]]
        assert sorted(map(repr, after[name])) == sorted(map(repr, left))
    shown = [json.loads(line) for line in kdissect("show", out, "-f", "json").stdout.splitlines()]
    assert len(shown) == len(after["exchanges"]) > 0
