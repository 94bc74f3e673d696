"""K on the main screen: rules of the protocol and baselines, whose lines go to the exchange and its bytes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dissector.analysis.conformance import check
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.tui.driver import SIZES
from tests.tui.main_driver import Screen, opened
from tui.result_lines import check_lines
from tui.screens.dialog import Menu
from tui.screens.main_screen import MainScreen
from tui.screens.verdicts_screen import VerdictsScreen
from tui.widgets.line_list import LineList

LIBRDKAFKA = PCAPS / "librdkafka.pcapng"


def lines(screen: Screen) -> LineList:
    return screen.pilot.app.screen.query_one(LineList)


@pytest.mark.long
async def test_capital_k_lists_broken_rules_and_enter_goes_to_the_bytes() -> None:
    async with opened(str(LIBRDKAFKA), size=SIZES[0]) as screen:
        await screen.press("K")
        for size in SIZES:
            await screen.resize(size)
            for words in ("Rules of the protocol", "1 rule broken", "request-trailing-bytes", "3 bytes"):
                assert words in screen.lines(), (size, words)
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert (screen.row, screen.path) == (59, "(rest)")
        await screen.press("K", "m", "down", "enter")
        assert (screen.row, screen.path) == (62, "(rest)")


@pytest.mark.long
async def test_a_baseline_beside_the_capture_is_offered_and_its_lines_go_to_the_field(tmp_path: Path) -> None:
    shutil.copy(LIBRDKAFKA, tmp_path / "orders.pcapng")
    (tmp_path / "orders.toml").write_text(
        '[settings]\nacks = "-1 ALL"\n"fetch partition max" = "7"\n[versions]\nFetch = "v3"\n'
    )
    (tmp_path / "other.toml").write_text("title = 1\n")  # none
    async with opened(str(tmp_path / "orders.pcapng"), size=(120, 40)) as screen:
        await screen.press("K")
        assert isinstance(screen.pilot.app.screen, Menu)
        assert "other.toml" not in screen.lines()
        await screen.press("down", "enter")
        assert isinstance(screen.pilot.app.screen, VerdictsScreen)
        for words in ("Checked against orders.toml", "versions.Fetch", "v3 → v16", "1 line held"):
            assert words in screen.lines(), words
        places = {}
        for _ in range(30):
            target = lines(screen).target
            places[getattr(target, "path", "")] = target
            await screen.press("down")
        assert {"header.request_api_version", "body.acks"} <= places.keys()
        await screen.press("home", "enter")
        assert screen.path == "header.request_api_version"
        await screen.press("K", "down", "enter")
        while getattr(lines(screen).target, "path", "") != "body.topics.partitions.partition_max_bytes":
            await screen.press("down")
        await screen.press("enter")
        assert screen.path == "body.topics[0].partitions[0].partition_max_bytes"


@pytest.mark.exhaustive
async def test_escape_returns_to_the_exchange_that_was_selected() -> None:
    async with opened(str(LIBRDKAFKA), size=(80, 24)) as screen:
        await screen.press("j", "j", "K", "escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == 2


@pytest.mark.long
async def test_what_is_said_of_several_messages_is_one_line_until_m_shows_each() -> None:
    async with opened(str(LIBRDKAFKA), size=(120, 40)) as screen:
        await screen.press("K")
        assert "60  ≠ 2× request (rest)" in screen.lines()
        count = lines(screen).count
        await screen.press("m")
        assert "60  ≠ request (rest)" in screen.lines()
        assert "63  ≠ request (rest)" in screen.lines()
        assert lines(screen).count == count + 2, "a message takes two lines"
        await screen.press("m")
        assert lines(screen).count == count


def test_what_differs_is_said_of_each_message() -> None:
    """Near misses: another field, or other words."""
    with Capture([str(LIBRDKAFKA)]) as capture:
        result = check([("orders", capture)])
    [first, _] = result.breaches
    said = [("a[0].b", "1"), ("a[7].b", "1"), ("a[0].c", "1"), ("a[0].b", "2")]
    result.breaches[:] = [
        replace(first, exchange=9 - n, path=path, words=words) for n, (path, words) in enumerate(said)
    ]
    texts = ["".join(text for text, _ in line.pieces) for line in check_lines(result) if line.target is not None]
    assert [text.split() for text in texts] == [
        ["6", "≠", "request", "a[0].b:", "2"], ["7", "≠", "request", "a[0].c:", "1"],
        ["8", "≠", "2×", "request", "a[7].b:", "1"],
    ]  # fmt: skip
    assert len([line for line in check_lines(result, whole=True) if line.target is not None]) == 4
