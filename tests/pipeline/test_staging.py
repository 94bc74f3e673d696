"""Rows as Parquet files: whatever the wire had in them."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dissector.analysis.records import Carried
from dissector.capture_file.tally import Tally
from dissector.pipeline.carried import cells
from dissector.pipeline.parts import TALLIES
from dissector.pipeline.staging import Staged, staged
from tests.pipeline.dealing import tables
from tests.traffic import Turn, capture_of, conversation, request, response


def written(folder: Path, rows: list[tuple[str, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    files = list(staged(rows, f"file://{folder}"))
    assert all(each.rows for each in files)
    return {each.table: pq.ParquetFile(folder / each.path).read().to_pylist() for each in files}


def test_text_that_is_not_utf_8_is_as_json_has_it(tmp_path: Path) -> None:
    asked = [Turn(True, request(1, client_id=b"caf\xe9 \xff")), Turn(False, response(1))]
    made = tables([capture_of(tmp_path, conversation(asked))])
    rows = [(name, row) for name in ("connections", "exchanges") for row in made[name]]
    [row] = written(tmp_path, rows)["exchanges"]
    assert row["client_id"] == "caf\\xe9 \\xff"
    assert '"client_id":"caf\\\\xe9 \\\\xff"' in row["request"]


def test_names_of_headers_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    key = b"\xfe".decode("utf-8", "surrogateescape")
    record = Carried("orders", 0, 1, 2, None, b"v", [{"key": key, "value": b"\xff"}])
    [row] = written(tmp_path, [("records", cells(record, kept=True))])["records"]
    assert row["headers"] == [{"key": "\\xfe", "value": b"\xff"}]


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_times_and_offsets_that_no_column_holds_are_null(tmp_path: Path, number: int) -> None:
    """Damaged batches have them: a base near the end, and a delta."""
    record = Carried("orders", 0, number, number, None, None, [])
    [row] = written(tmp_path, [("records", cells(record, kept=True))])["records"]
    assert (row["offset"], row["timestamp_ms"], row["topic"]) == (None, None, "orders")


def test_what_a_part_left_out_goes_beside_its_files(tmp_path: Path) -> None:
    tally = Tally(strangers=3)
    [found] = staged([(TALLIES, {"tally": pickle.dumps(tally)})], f"file://{tmp_path}")
    assert (found.table, found.rows) == (TALLIES, 0)
    assert pickle.loads(found.tally or b"") == tally
    assert Staged(*found.batch.to_pylist()[0].values()) == found
    assert not list(tmp_path.iterdir())
