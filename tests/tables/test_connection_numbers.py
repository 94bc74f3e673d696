"""`show` of tables prints what `show` of the captures does, to the byte: TCP connections that are not Kafka's count
among the connections, and findings have the order of the capture, whether one message or many show them."""

from pathlib import Path

import pytest

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, some_of

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
MANY_OTHERS = "two-brokers"
OTHERS = ("kraft-quorum", "trouble-metadata-storm", MANY_OTHERS)
"""Captures with connections that have no row."""
OVERSIZED = "trouble-oversized-request"
"""A capture of a row with a finding of several connections, and others of its message."""


def shown(*words: str) -> list[bytes]:
    done = kdissect("show", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "form"),
    some_of(
        [pytest.param(parts, form, id=f"{parts}-{form}") for parts in (1, 3) for form in ("text", "json")], "3-json"
    ),
)
def test_tables_are_shown_as_the_captures_are(tmp_path: Path, parts: int, form: str) -> None:
    files = [str(PCAPS / f"{name}.pcapng") for name in (*OTHERS, OVERSIZED)]
    ingest_here(files, str(tmp_path), WriteOptions(), parts=parts)
    assert shown(str(tmp_path), "-f", form) == shown(*files, "-f", form)


@pytest.mark.long
@pytest.mark.slow
def test_captures_of_two_runs_are_counted_one_behind_the_other(tmp_path: Path) -> None:
    files = [str(PCAPS / f"{name}.pcapng") for name in OTHERS[1:]]
    for each in files:
        ingest_here([each], str(tmp_path), WriteOptions())
    fields = ("--fields", "number,connection,correlation_id,api")
    assert shown(str(tmp_path), *fields) == shown(*files, *fields)


@pytest.mark.long
@pytest.mark.slow
def test_a_connection_is_found_by_its_number(tmp_path: Path) -> None:
    file = str(PCAPS / f"{MANY_OTHERS}.pcapng")
    ingest_here([file], str(tmp_path), WriteOptions())
    numbers = {int(line) for line in shown(file, "--fields", "connection", "-f", "csv")[1:]}
    assert len(numbers) < max(numbers)
    for number in (min(numbers), max(numbers)):
        words = ("-Y", f"connection == {number}")
        assert shown(str(tmp_path), *words) == shown(file, *words)
