"""The sequence diagram, driven by keys and clicks."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.cells import cell_len

from dissector.analysis.sequence_diagram import Lane, SequenceDiagram, sequence_diagram
from dissector.capture_session import Capture
from tests.cases import cases
from tests.conftest import PCAPS
from tests.storage.test_files import LEDGER
from tests.traffic import capture_of, conversation, exchanges
from tests.tui.driver import SIZES
from tests.tui.main_driver import Screen, opened
from tests.tui.shared_screens import SharedScreens
from tui.screens.main_screen import MainScreen
from tui.screens.sequence_screen import SequenceScreen
from tui.sequence_layout import (
    LaneLayout,
    event_line,
    first_lane_to_show,
    hidden_lanes,
    lane_heads,
    lane_layout,
)
from tui.widgets.sequence_view import SequenceView

CLASSIC = str(PCAPS / "java-classic.pcapng")
PIPELINED = str(PCAPS / "librdkafka-pipelined.pcapng")
QUORUM = str(PCAPS / "kraft-quorum.pcapng")


def view(screen: Screen) -> SequenceView:
    return screen.pilot.app.screen.query_one(SequenceView)


def diagram(screen: Screen) -> SequenceDiagram:
    found = view(screen).diagram
    assert found is not None
    return found


@pytest.mark.long
async def test_l_shows_lanes_and_arrows_at_every_size() -> None:
    async with opened(CLASSIC, size=SIZES[0]) as screen:
        await screen.press("D")
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            for words in ("Sequence · 74 rows", "5 lanes", "node 1", "127.0.0.1:9092", "ApiVersions v4", "▶", "◀", "│"):
                assert words in drawn, size


def test_lanes_beyond_the_edges_are_counted() -> None:
    lanes = [Lane(f"client {n}", f"10.0.0.{n}:5", True) for n in range(9)] + [Lane("broker", "10.0.1.1:9092", False)]
    for first in range(9):
        shown = lane_layout(lanes, first, 100)
        left, right = hidden_lanes(lanes, shown)
        assert (left, left + right + len(shown.lanes)) == (shown.lanes[0], len(lanes))


@pytest.mark.exhaustive
async def test_the_heading_says_how_many_lanes_are_beyond_the_edges_and_a_legend_what_bars_mean() -> None:
    async with opened(CLASSIC, size=(80, 24)) as screen:
        await screen.press("D", "g")
        assert "▸ 2 more" in screen.lines()
        assert "◂" not in screen.lines()
        await screen.press("right")
        assert "◂ 1 more" in screen.lines()
        assert "▸ 1 more" in screen.lines()
        assert "requests in flight" in screen.lines()


@pytest.mark.long
async def test_it_begins_at_the_row_of_the_list_enter_goes_to_another_and_closing_to_none(
    shared: SharedScreens,
) -> None:
    async with shared.opened(CLASSIC) as screen:
        for key in ("escape", "q"):
            await screen.press("5", "G", "D", "G", key)
            assert isinstance(screen.pilot.app.screen, MainScreen)
            assert screen.row == 4
        await screen.press("1", "4", "G", "D")
        assert diagram(screen).event(view(screen).cursor).number == 13
        await screen.press("r", "j", "enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == 14


@pytest.mark.exhaustive
async def test_times_count_from_the_same_packet_as_in_the_list(shared: SharedScreens) -> None:
    async with shared.opened(CLASSIC) as screen:
        [listed] = [line.split()[2] for line in screen.lines().splitlines() if line.startswith("▸")]
        await screen.press("D")
        [drawn] = [line.split()[2] for line in screen.lines().splitlines() if line.startswith("▸")]
        assert listed == drawn == "0.202062"


@pytest.mark.exhaustive
async def test_keys_move_through_the_messages() -> None:
    async with opened(CLASSIC, size=(80, 24)) as screen:
        await screen.press("D")
        for keys, at in [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", 147), ("g", 0), ("end", 147), ("home", 0)]:
            await screen.press(*keys.split())
            assert view(screen).cursor == at, keys
        await screen.press("pagedown", "ctrl+d")
        assert view(screen).cursor > 20
        assert view(screen).cursor in view(screen).shown
        await screen.press("pageup", "ctrl+u")
        assert view(screen).cursor == 0


@pytest.mark.exhaustive
async def test_r_goes_to_the_other_message_and_pipelining_shows_as_thicker_lanes() -> None:
    async with opened(PIPELINED) as screen:
        await screen.press("2", "1", "G", "D")
        at = view(screen).cursor
        await screen.press("r")
        assert view(screen).cursor == int(diagram(screen).partner[at]) > at + 1
        await screen.press("r")
        assert view(screen).cursor == at
        assert "█" in screen.lines()
        await screen.press("g")
        assert "▌" not in screen.lines().split("Produce")[0]


@pytest.mark.exhaustive
async def test_lanes_pass_sideways_and_follow_the_cursor() -> None:
    async with opened(QUORUM, size=(80, 24)) as screen:
        await screen.press("D")
        first = screen.lines().splitlines()[1]
        await screen.press("right", "l")
        assert screen.lines().splitlines()[1] != first
        await screen.press("left", "h")
        assert screen.lines().splitlines()[1] == first
        await screen.press("G")
        event = diagram(screen).event(view(screen).cursor)
        client = diagram(screen).lanes[min(event.source, event.target)].name
        assert client[-8:] in screen.lines().splitlines()[1]


@pytest.mark.exhaustive
async def test_a_click_selects_an_arrow_and_a_double_click_opens_its_exchange(shared: SharedScreens) -> None:
    async with shared.opened(CLASSIC) as screen:
        await screen.press("D")
        await screen.pilot.click(SequenceView, offset=(40, 7))
        await screen.settle()
        assert view(screen).cursor == 5
        await screen.pilot.click(SequenceView, offset=(40, 9), times=2)
        await screen.settle()
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == 3


@pytest.mark.long
async def test_x_writes_mermaid_and_svg_and_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(CLASSIC) as screen:
        await screen.press("D", "x", "enter", "x", "down", "enter", "x", "j", "enter")
        assert isinstance(screen.pilot.app.screen, SequenceScreen)
        await screen.press("x", "escape")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "sequence-1-74-2.svg",
        "sequence-1-74.mmd",
        "sequence-1-74.svg",
    ]
    assert {path.stat().st_mode for path in tmp_path.iterdir()} == {0o100600}
    assert (tmp_path / "sequence-1-74.mmd").read_text().startswith("sequenceDiagram\n")
    ElementTree.parse(tmp_path / "sequence-1-74.svg")


@pytest.mark.exhaustive
async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refused)
    async with opened(CLASSIC, size=(120, 40)) as screen:
        await screen.press("D", "x", "enter")
        [notification] = screen.pilot.app._notifications
        assert notification.message == "sequence-1-74.mmd: read-only file system"


@pytest.mark.exhaustive
async def test_rows_that_the_list_hides_are_not_in_the_diagram(shared: SharedScreens) -> None:
    async with shared.opened(CLASSIC) as screen:
        screen.main.view.keep(np.array([13, 14, 15]))
        await screen.press("D")
        assert "Sequence · 3 rows" in screen.lines()
        assert {event.number for event in diagram(screen)} == {13, 14, 15}


LANES = [Lane(f"client-{n}", "10.0.0.1", True) for n in range(40)] + [Lane("node 1", "b:9092", False)]
WIDE_LANES = [Lane(f"注文-{n}-テーブル-テーブル", "10.0.0.1", True) for n in range(40)] + [
    Lane("ノード", "b:9092", False)
]


@cases("width", [30, 52, 60, 100, 170])
def test_the_broker_stays_while_clients_pass(width: int) -> None:
    for first in (0, 7, 39, 100):
        shown = lane_layout(LANES, first, width)
        assert shown.lanes[-1] == 40
        assert list(shown.lanes) == sorted(shown.lanes)
        assert all(0 <= cell < width for cell in shown.cells)
        for lanes in (LANES, WIDE_LANES):
            heads = lane_heads(lanes, shown)
            assert all(cell_len(words) == width for words in heads)
            assert not re.search(r"\S…", heads[0]), "a name runs into the next one"
    for lane in range(41):
        assert lane in lane_layout(LANES, first_lane_to_show(LANES, 3, width, lane), width).lanes


def test_more_brokers_than_fit_pass_too() -> None:
    lanes = [Lane("client", "h", True), *(Lane(f"node {n}", f"b{n}:9092", False) for n in range(9))]
    seen = {lane for first in range(10) for lane in lane_layout(lanes, first, 80).lanes}
    assert seen == set(range(10))


def test_a_line_fills_its_width_wherever_its_lanes_are(tmp_path: Path) -> None:
    with Capture([capture_of(tmp_path, conversation(exchanges(2)))]) as capture:
        for _ in capture.read():
            pass
        event = sequence_diagram(capture, range(2)).event(0)
    shown = LaneLayout((3, 5, 40), (5, 30, 55), 60)
    for source, target in [(3, 40), (40, 3), (5, 40), (0, 40), (40, 0), (20, 40), (5, 39), (0, 1)]:
        pieces = event_line(event._replace(source=source, target=target), LANES, shown, {40: 3})
        assert sum(len(piece.text) for piece in pieces) == 60, (source, target)


@cases("words", ["注文", "注文テーブル" * 9])
def test_an_arrow_with_wide_characters_has_its_tip(tmp_path: Path, words: str) -> None:
    with Capture([capture_of(tmp_path, conversation(exchanges(2)))]) as capture:
        for _ in capture.read():
            pass
        event = sequence_diagram(capture, range(2)).event(0)._replace(words=words)
    shown = LaneLayout((3, 5, 40), (5, 30, 55), 60)
    before, arrow, after = event_line(event._replace(source=3, target=40), LANES, shown, {})
    assert [cell_len(each.text) for each in (before, arrow, after)] == [6, 49, 5]
    assert arrow.text[-1] == "▶"
    assert words[0] in arrow.text
    assert arrow.text.endswith("… ─▶") == (len(words) > 20)


@pytest.mark.exhaustive
async def test_entries_of_kafkas_files_have_no_arrows() -> None:
    async with opened(LEDGER) as screen:
        await screen.press("D", "j", "G", "r", "enter", "x", "right")
        assert isinstance(screen.pilot.app.screen, SequenceScreen)
        assert len(diagram(screen)) == 0
        await screen.press("escape", "o", "escape", "L", "escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)
