"""Frames that the snap length cut say so, and say no other cause; what is there is shown."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import dissector
from dissector.capture_session import Capture
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.capture_session.tally import CaptureTally
from dissector.cli.every_command import app
from tests.traffic import Turn, capture_of, conversation, ethernet, exchanges, pcap
from tools.fuzz.logins import METADATA, VERSIONS

SNAP = 80


def snapped(folder: Path) -> Path:
    turns = [Turn(each.from_client, each.data) for each in (*VERSIONS, *METADATA, *VERSIONS)]
    path = folder / "snapped.pcap"
    path.write_bytes(pcap([ethernet(each) for each in conversation(turns, handshake=True)], snaplen=SNAP))
    return path


def test_rows_and_stderr_say_that_the_snap_length_cut_frames(tmp_path: Path) -> None:
    path = snapped(tmp_path)
    found = CliRunner().invoke(app, ["show", str(path)])
    assert found.exit_code == 0
    assert found.stderr.count("2 frames truncated by snap length 80") == 1
    assert "cut off by the snap length" in found.stdout
    with dissector.open(path) as capture:
        findings = [each for exchange in capture.exchanges() for each in exchange.findings]
    assert any("bytes were cut off by the snap length; " in each.message for each in findings)
    assert "cut-short" not in {each.code for each in findings}


def test_frames_that_were_cut_are_counted_over_partitions() -> None:
    parts = [CaptureTally(cut_frames=2, snap_length=80), CaptureTally(cut_frames=1)]
    [found] = CaptureTally.merged([], parts).problems
    assert found.message == "3 frames truncated by snap length 80"
    assert not CaptureTally(snap_length=80).problems


def test_no_other_file_is_looked_at_where_no_packet_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may be thousands, with a batch each."""
    monkeypatch.setattr(StagePipeline, "_truncations", lambda _: pytest.fail("looked at the files"))
    paths = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        paths.append(capture_of(tmp_path / str(number), conversation(exchanges(2))))
    with Capture(paths) as capture:
        list(capture.read())
        assert len(capture) > 0
