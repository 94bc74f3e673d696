"""Updates of findings reach the rows of the tables, and nothing else changes."""

from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dissector.pipeline.table_rows import Cells

if find_spec("pyspark") is None:
    pytest.skip("NOT TESTED with pyspark: it is not installed", allow_module_level=True)

from dissector.pipeline.row_updates import rewrite_findings

DAY = "day=2026-11-21"


def finding(packet: int, message: str, capture: str = "a") -> Cells:
    return {"day": date(2026, 11, 21), "capture": capture, "packet": packet, "start": 7, "code": "slow",
            "severity": "warning", "path": "response", "message": message}  # fmt: skip


def written(tables: Path, name: str, rows: list[Cells]) -> Path:
    file = tables / "findings" / DAY / "capture=a" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    cells = [{name: value for name, value in row.items() if name not in ("day", "capture")} for row in rows]
    pq.write_table(pa.Table.from_pylist(cells).replace_schema_metadata({"whose": "Spark's"}), file)
    return file


def test_a_file_with_changed_findings_is_rewritten(tmp_path: Path) -> None:
    tables, stage = tmp_path / "tables", tmp_path / "stage"
    one = written(tables, "1.parquet", [finding(1, "took long"), finding(1, "took longer"), finding(2, "took long")])
    written(tables, "2.parquet", [finding(3, "took long"), finding(4, "took long")])
    was = one.read_bytes()
    changes = [finding(1, "took long; twice") | {"before": "took long"}, finding(9, "!") | {"before": "elsewhere"}]
    changes.append(finding(3, "took long; of another capture", "b") | {"before": "took long"})
    rewrite_findings(tables, stage, changes)
    [made] = [path for path in stage.rglob("*") if path.is_file()]
    assert made.relative_to(stage) == one.relative_to(tables)
    messages = pq.read_table(made, partitioning=None).column("message").to_pylist()
    assert messages == ["took long; twice", "took longer", "took long"]
    assert pq.read_schema(made).equals(pq.read_schema(one), check_metadata=True)
    assert one.read_bytes() == was, "the tables stay as they are until all is staged"


def test_where_nothing_changed_nothing_is_written(tmp_path: Path) -> None:
    written(tmp_path / "tables", "1.parquet", [finding(1, "took long")])
    rewrite_findings(tmp_path / "tables", tmp_path / "stage", [])
    rewrite_findings(tmp_path / "tables", tmp_path / "stage", [finding(2, "!") | {"before": "?"}])
    assert not (tmp_path / "stage").exists()
