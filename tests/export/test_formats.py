"""Every format is one complete entry, and the command and the screen offer all of them."""

import subprocess
import sys

import pytest

from dissector.capture_session import Capture
from dissector.export.exporter import export_rows
from dissector.export.formats import SUFFIXES, ExportFormat, ExportRequest
from tests.cases import cases
from tests.conftest import PCAPS
from tui.screens.export_dialog import FORMATS


@pytest.mark.long
@cases("export_format", ExportFormat)
def test_every_format_produces_bytes(export_format: ExportFormat) -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        assert b"".join(export_rows(capture, range(5), ExportRequest(export_format), pytest.fail))


@cases("export_format", ExportFormat)
def test_every_entry_is_complete(export_format: ExportFormat) -> None:
    assert export_format == export_format.value == export_format.entry.name
    assert export_format.entry.label
    assert export_format.entry.description
    assert {SUFFIXES[suffix] for suffix in export_format.entry.suffixes} == {export_format}


def test_names_labels_and_suffixes_are_unique() -> None:
    entries = [export_format.entry for export_format in ExportFormat]
    assert len({entry.name for entry in entries}) == len({entry.label for entry in entries}) == len(entries)
    assert len(SUFFIXES) == sum(len(entry.suffixes) for entry in entries)


def test_the_command_and_the_screen_offer_every_format() -> None:
    command = [sys.executable, "-m", "dissector.cli.main", "export", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, env={"COLUMNS": "200"}).stdout
    assert [export_format for export_format in ExportFormat if export_format.value not in shown] == []
    assert set(FORMATS) == set(ExportFormat)
