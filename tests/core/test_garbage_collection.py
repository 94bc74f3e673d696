"""Garbage collection is infrequent while a command reads and prints, and as before afterwards."""

import gc

import pytest

from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.show import show
from dissector.core.garbage_collection import COLLECTION_THRESHOLD, infrequent_collection
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


def test_what_a_command_leaves_is_not_searched_for_cycles_as_it_ends() -> None:
    usual, frozen, searched = gc.get_threshold(), gc.get_freeze_count(), []
    gc.set_threshold(700)
    gc.callbacks.append(lambda phase, _info: searched.append(phase))
    try:
        with infrequent_collection():
            held = [[] for _ in range(10_000)]
        held += [[] for _ in range(100)]
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*usual)
    assert searched == []
    assert gc.get_freeze_count() == frozen
