"""An examination for some rows finds of them what a whole one finds."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dissector.capture_session import Capture
from dissector.core.finding import Finding
from dissector.findings.detectors.sequence_numbers import RetriedBatch
from tests.cases import cases
from tests.conftest import PCAPS
from tests.findings.conversations import Talk, heartbeat, produce, written

RECORDED = [
    *sorted(path for path in PCAPS.glob("trouble-*.pcapng") if path.stem != "trouble-slow"),
    *(PCAPS / f"{name}.pcapng" for name in ("encoder", "java-admin", "kraft-quorum", "sarama-1.0.0", "two-brokers")),
]


def findings(capture: Capture, rows: Sequence[int] | None = None) -> list[tuple[int, Finding]]:
    """What an examination finds of some rows, or of all."""
    capture.findings.restart()
    if rows is not None:
        capture.findings.limit_to(np.array(rows, np.int64))
    for _ in capture.findings.examine():
        pass
    return [each for each in capture.findings.cross_message() if rows is None or each[0] in set(rows)]


def check(paths: Sequence[Path], subsets: int) -> None:
    """Compare a whole examination with those for each row that has a finding, and for random rows."""
    with Capture([str(path) for path in paths]) as capture:
        for _ in capture.read():
            pass
        whole, count = findings(capture), len(capture)
        chosen = random.Random(count)
        groups = [[row] for row in sorted({row for row, _ in whole})]
        groups += [sorted(chosen.sample(range(count), chosen.randint(1, count))) for _ in range(subsets)]
        for rows in groups:
            assert findings(capture, rows) == [each for each in whole if each[0] in set(rows)], rows


@pytest.mark.long
@pytest.mark.slow
@cases("recorded", RECORDED, ids=lambda path: path.stem)
def test_of_recordings(recorded: Path) -> None:
    check([recorded], 2)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_of_recordings_read_as_one_capture() -> None:
    check(RECORDED, 6)


def test_what_nobody_asked_for_is_not_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats, batches = Talk(1), Talk(2)
    for n in range(60):
        heartbeat(beats, n)
        produce(batches, n, producer=(7, 0, n))
    with Capture([written(tmp_path, beats, batches)]) as capture:
        for _ in capture.read():
            pass
        assert [finding.code for _, finding in findings(capture)] == ["tiny-batches"]
        beat_rows = [n for n, exchange in enumerate(capture.at(range(len(capture)))) if exchange.row.api == "Heartbeat"]
        monkeypatch.setattr(RetriedBatch, "add", lambda *_: pytest.fail("a batch was observed"))
        assert not findings(capture, beat_rows)
        with pytest.raises(pytest.fail.Exception):
            findings(capture)
