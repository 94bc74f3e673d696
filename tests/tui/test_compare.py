"""The dialog for the capture to compare with: typed, or found by a part of its name."""

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, opened
from tui.app import KDissectApp
from tui.messages import CompareWith
from tui.screens.compare_dialog import CompareDialog


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the captures to compare with; the comparison has tests of its own."""
    paths: list[str] = []
    monkeypatch.setattr(KDissectApp, "on_compare_with", lambda _, event: paths.append(event.path))
    return paths


async def test_a_part_of_a_name_leaves_what_has_it_and_enter_takes_the_first(asked: list[str]) -> None:
    async with opened(JAVA) as screen:
        await screen.press("d")
        dialog = screen.pilot.app.screen
        assert isinstance(dialog, CompareDialog)
        everything = dialog.query_one(OptionList).option_count
        await screen.press(*"RDKAFKA-2")
        assert 0 < dialog.query_one(OptionList).option_count < everything
        await screen.press("enter")
        assert asked == [str(PCAPS / "compare-librdkafka-2.pcapng")]


async def test_a_path_is_taken_as_typed_whether_it_exists_or_not(asked: list[str], tmp_path: Path) -> None:
    there, missing = tmp_path / "java.pcap", tmp_path / "missing.pcap"
    there.write_bytes(b"")
    async with opened(JAVA) as screen:
        for path in (there, missing):
            await screen.press("d")
            screen.pilot.app.screen.query_one(Input).value = str(path)
            await screen.press("enter")
    assert asked == [str(there), str(missing)]


async def test_nothing_typed_compares_with_nothing(asked: list[str]) -> None:
    async with opened(JAVA) as screen:
        await screen.press("d", "enter", "d", "escape")
    assert asked == []
    assert CompareWith.handler_name == "on_compare_with"
