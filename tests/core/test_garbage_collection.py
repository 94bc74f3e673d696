"""Garbage collection is infrequent while a command reads and prints, and as before afterwards."""

import gc

import pytest

from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.show import show
from dissector.core.garbage_collection import COLLECTION_THRESHOLD
from tests.conftest import PCAPS


def test_show_collects_infrequently_while_it_reads(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usual = gc.get_threshold()
    seen = []

    class Watched(Capture):
        def read(self, **how: bool):
            seen.append(gc.get_threshold()[0])
            return super().read(**how)

    monkeypatch.setattr("dissector.capture_session.Capture", Watched)
    assert show([str(PCAPS / "java.pcapng")], Format.TEXT, None, "api_key") == 0
    assert seen == [COLLECTION_THRESHOLD]
    assert gc.get_threshold() == usual
    assert show([str(PCAPS / "java.pcapng")], Format.TEXT, 1, None) == 0
    assert gc.get_threshold() == usual
