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
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the captures to compare with. The comparison itself has other tests."""
    paths: list[str] = []
    monkeypatch.setattr(KDissectApp, "on_compare_with", lambda _, event: paths.append(event.path))
    return paths


@pytest.mark.long
async def test_typing_narrows_the_names_and_enter_takes_the_first(compared: list[str]) -> None:
    async with opened(JAVA) as screen:
        await screen.press("d")
        dialog = screen.pilot.app.screen
        assert isinstance(dialog, CompareDialog)
        everything = dialog.query_one(OptionList).option_count
        await screen.press(*"RDKAFKA-2")
        assert 0 < dialog.query_one(OptionList).option_count < everything
        await screen.press("enter")
        assert compared == [str(PCAPS / "compare-librdkafka-2.pcapng")]


@pytest.mark.exhaustive
async def test_a_path_is_taken_as_typed_even_if_it_does_not_exist(compared: list[str], tmp_path: Path) -> None:
    there, missing = tmp_path / "java.pcap", tmp_path / "missing.pcap"
    there.write_bytes(b"")
    async with opened(JAVA) as screen:
        for path in (there, missing):
            await screen.press("d")
            screen.pilot.app.screen.query_one(Input).value = str(path)
            await screen.press("enter")
    assert compared == [str(there), str(missing)]


@pytest.mark.exhaustive
async def test_an_empty_line_compares_nothing(compared: list[str]) -> None:
    async with opened(JAVA) as screen:
        await screen.press("d", "enter", "d", "escape")
    assert compared == []
    assert CompareWith.handler_name == "on_compare_with"
