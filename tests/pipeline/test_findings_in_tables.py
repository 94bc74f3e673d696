"""Cross-connection findings are in the tables that Spark writes as `show` prints them: codes, severities and words."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.needs import needs

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.tables.schemas import ROW_KEY
from tests.pipeline.clusters import kdissect
from tests.pipeline.contents import rows_that_count

pytestmark = [pytest.mark.slow, pytest.mark.spark]
FILES = [*sorted(PCAPS.glob("trouble-*.pcapng")), PCAPS / "java-admin.pcapng", PCAPS / "sarama-1.0.0.pcapng"]
OF_FINDINGS = ("time_ns", "client", "server", "api", "code", "severity", "path", "message")
OF_ROWS = ("time_ns", "client", "server", "api", "kind", "info")
Lines = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of captures with troubles."""
    needs("java")
    made = tmp_path_factory.mktemp("tables")
    process = kdissect("ingest", *map(str, FILES), "--out", str(made), "--master", "local[2]")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return made


@pytest.fixture(scope="module")
def shown() -> tuple[Lines, Lines]:
    """Findings and rows of the same captures, read as one."""
    findings, rows = Lines(), Lines()
    with Capture(list(map(str, FILES))) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        assert len({finding.code for _, finding in capture.findings.cross_message()}) > 15
        for exchange in capture.exchanges():
            row = exchange.row
            where = (row.time_ns, row.client, row.server, row.api)
            findings.update(
                (*where, each.code, each.severity.value, each.path, each.message) for each in exchange.findings
            )
            rows[(*where, row.kind, exchange.own_info)] += 1
    return findings, rows


def test_findings_are_those_that_show_has(out: Path, shown: tuple[Lines, Lines]) -> None:
    there = rows_that_count(out)
    rows = {where(row): row for row in there["exchanges"]}
    made = Counter(tuple((rows[where(each)] | each)[name] for name in OF_FINDINGS) for each in there["findings"])
    assert made == shown[0]


def where(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ROW_KEY)


def test_exchanges_have_their_own_words(out: Path, shown: tuple[Lines, Lines]) -> None:
    assert Counter(tuple(row[name] for name in OF_ROWS) for row in rows_that_count(out)["exchanges"]) == shown[1]
