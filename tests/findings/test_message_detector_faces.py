"""Detectors of one message on all faces: the rows that have their findings are found by columns, the others cost
nothing, and all faces agree."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dissector.capture_session import Capture
from dissector.cli.every_command import app
from dissector.core.arrays import Int64
from dissector.core.finding import Severity
from dissector.findings.detectors.sequence_numbers import RetriedBatch
from dissector.findings.detectors.slow_response import SLOW
from dissector.pipeline.packed_rows import Made, PackedRowBuilder
from tests.conftest import PCAPS, some_of
from tests.findings.message_detectors import (
    AllAcks,
    RoundWatermark,
    expected,
    make_capture,
    opened,
    rows_decoded,
    use,
)
from tests.pipeline.without_spark import tables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_capture(tmp_path_factory.mktemp("made"))


@pytest.fixture
def paths(made: Path) -> dict[str, Path]:
    return {"made": made, "producer": PCAPS / "librdkafka-pipelined.pcapng", "consumers": PCAPS / "two-brokers.pcapng"}


def printed(*words: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code in (0, 1), result.output  # 1: there is no such row
    return result.stdout


def shown(path: Path) -> list[set[str]]:
    lines = printed("show", str(path)).splitlines()[1:]
    return [set(re.findall(r"\[([a-z0-9-]+)\]", line)) for line in lines]


def in_json(path: Path) -> list[set[str]]:
    lines = printed("show", str(path), "--format", "json").splitlines()
    return [{each["code"] for each in json.loads(line)["findings"]} for line in lines]


def filtered(path: Path, wanted: str) -> set[int]:
    return {int(line) - 1 for line in printed("show", str(path), "-Y", wanted, "--fields", "number").split()}


def ingested(path: Path) -> Counter[str]:
    return Counter(each["code"] for each in tables([path])["findings"])


FACES = {
    "show": lambda path: shown(path),
    "json": lambda path: in_json(path),
    "filter": lambda path: filtered(path, f"finding == {SLOW.code}"),
    "severity": lambda path: filtered(path, "severity == error"),
    "stats": lambda path: printed("stats", str(path), "--by", "finding", "--format", "json"),
    "ingest": lambda path: ingested(path),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["made", "producer", "consumers"], "made"))
@pytest.mark.parametrize("face", FACES)
def test_rows_with_and_without_findings_go_by_columns(
    paths: dict[str, Path], name: str, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = paths[name]
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        count = len(capture)
    decoded = rows_decoded(monkeypatch)
    FACES[face](path)
    without = sum(decoded)
    use(monkeypatch, AllAcks, RoundWatermark)
    decoded.clear()
    FACES[face](path)
    assert sum(decoded) <= without + 0.05 * count
    if name == "made":
        assert sum(decoded) <= 0.05 * count


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["made", "producer", "consumers"])
def test_rows_of_tables_with_findings_are_made_by_columns(
    paths: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, by_columns = PackedRowBuilder.rows, 0

    def counted(builder: PackedRowBuilder, chosen: Int64) -> Iterator[Made]:
        nonlocal by_columns
        for made in make(builder, chosen):
            by_columns += len(made.rows)
            yield made

    monkeypatch.setattr(PackedRowBuilder, "rows", counted)
    tables([paths[name]])
    without, by_columns = by_columns, 0
    use(monkeypatch, AllAcks, RoundWatermark)
    found = tables([paths[name]])
    assert by_columns == without
    rows = {(each["packet"], each["start"]): at for at, each in enumerate(sorted(
        found["exchanges"], key=lambda each: (each["packet"], each["start"])))}  # fmt: skip
    wanted = [(at, *each) for at, findings in enumerate(expected(paths[name], AllAcks, RoundWatermark))
              for each in ((each.code, each.message, each.path) for each in findings)]  # fmt: skip
    codes = {RetriedBatch.explanation.code, SLOW.code}
    assert wanted == sorted(
        (rows[each["packet"], each["start"]], each["code"], each["message"], each["path"])
        for each in found["findings"] if each["code"] in codes
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["made", "producer", "consumers"], "made"))
def test_all_faces_agree(paths: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = paths[name]
    use(monkeypatch, AllAcks, RoundWatermark)
    wanted = expected(path, AllAcks, RoundWatermark)
    lines, objects = shown(path), in_json(path)
    counts = {each["finding"]: each["exchanges"] for each in map(
        json.loads, printed("stats", str(path), "--by", "finding", "--format", "json").splitlines())}  # fmt: skip
    in_tables = ingested(path)
    for detector in (AllAcks, RoundWatermark):
        code = detector.explanation.code
        rows = {at for at, findings in enumerate(wanted) if code in {each.code for each in findings}}
        assert {at for at, codes in enumerate(lines) if code in codes} == rows
        assert {at for at, codes in enumerate(objects) if code in codes} == rows
        assert filtered(path, f"finding == {code}") == rows
        assert counts.get(code, 0) == len(rows)
        assert in_tables[code] == sum(each.code == code for findings in wanted for each in findings)
    with opened(path) as capture:
        errors = {at for at, each in enumerate(capture.exchanges()) if each.row.severity is Severity.ERROR}
    assert filtered(path, "severity == error") == errors
    assert errors >= {
        at for at, findings in enumerate(wanted) if Severity.ERROR in {each.severity for each in findings}
    }
