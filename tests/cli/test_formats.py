"""Every output format has a renderer."""

import pytest

from dissector.cli.diff import RENDERERS as DIFF_RENDERERS
from dissector.cli.formats import DiffFormat, Format
from dissector.cli.render.printing import FORMATS, RowFormat, RowRenderer
from dissector.export.table_cells import as_csv
from tests.bulk.test_info_texts import opened
from tests.conftest import PCAPS


def test_every_format_of_rows_has_a_renderer() -> None:
    assert set(FORMATS) == set(Format)


def test_what_a_format_does_is_its_entry_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = RowFormat(names_findings_only=True, cells=as_csv, columns=("number", "api"), names_columns=True)
    monkeypatch.setitem(FORMATS, Format.TREE, entry)
    printing, capture = RowRenderer.of(Format.TREE, None), opened(PCAPS / "java.pcapng")
    apis = [exchange.row.api for exchange in capture.at(range(2))]
    assert b"".join((printing.head, *printing.lines(capture, range(2)))).decode().splitlines() == [
        "number,api", f"1,{apis[0]}", f"2,{apis[1]}",
    ]  # fmt: skip
    assert printing.is_cheap
    assert not printing.writes_messages
    assert RowRenderer.of(Format.TREE, "api").names == ("api",)


def test_every_format_of_a_diff_has_a_renderer() -> None:
    assert set(DIFF_RENDERERS) | {DiffFormat.JSON} == set(DiffFormat)
