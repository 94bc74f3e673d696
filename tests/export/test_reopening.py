"""What is said of the rows that an export opens as."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.export.reopening import reopens_as
from tests.conftest import PCAPS


@pytest.mark.parametrize(
    ("capture", "rows", "words"),
    [
        ("java", range(60), "60 rows"),
        ("java", [1, 4], "6 rows: 4 gaps between them"),
        ("librdkafka-pipelined", range(2, 30), "49 rows: 2 gaps between them, 19 more in the same packets"),
    ],
)
def test_gaps_and_rows_that_share_packets_are_counted(
    capture: str, rows: Sequence[int], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "some.pcapng"
    with Capture([str(PCAPS / f"{capture}.pcapng")]) as opened:
        list(opened.exchanges())
        path.write_bytes(b"".join(export_rows(opened, rows, ExportRequest(ExportFormat.PCAPNG), str)))
    assert reopens_as(path, len(rows)) == f"; it reopens as {words}"


def test_a_file_that_does_not_open_says_why_and_a_pipe_says_nothing(tmp_path: Path) -> None:
    assert reopens_as(tmp_path / "absent", 1).startswith("; it can't be opened again: ")
    os.mkfifo(tmp_path / "pipe")
    assert not reopens_as(tmp_path / "pipe", 1)
