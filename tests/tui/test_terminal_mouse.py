"""The mouse as a terminal reports it (xterm's SGR encoding): click, drag, wheel."""

import json
import sys
from pathlib import Path

import pytest

from tests.terminal import terminal
from tests.tui.main_driver import JAVA, opened
from tests.tui.test_panes import place_of

pytestmark = pytest.mark.slow

MOVED, WHEEL_DOWN = 32, 65
Cell = tuple[int, int]


def mouse(button: int, cell: Cell, *, up: bool = False) -> str:
    """What a terminal sends; cells count from 0 here, and from 1 there."""
    return f"\x1b[<{button};{cell[0] + 1};{cell[1] + 1}{'m' if up else 'M'}"


async def places() -> tuple[Cell, Cell, Cell]:
    """Where a screen of that size has byte 5, the border below the list, and a row of it."""
    async with opened(JAVA, size=(120, 40)) as screen:
        x, y = place_of(screen, 5)
        pane, rows = screen.bytes.region, screen.list.region
        return (pane.x + x, pane.y + y), (pane.x + 9, pane.y), (rows.x + 20, rows.y + 3)


@pytest.mark.long
async def test_click_drag_and_wheel_reach_the_screen(tmp_path: Path) -> None:
    """All of a drag is sent at once: no hand is faster."""
    byte, border, row = await places()
    above = border[0], border[1] - 6
    folders = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with terminal(
        [sys.executable, "-m", "dissector.cli.main", "open", JAVA], columns=120, lines=40, **folders
    ) as there:
        there.until_seen(lambda lines: "100%" in lines[0] and "bytes" in lines[border[1]] and "0000 " in lines[byte[1]])
        there.send(mouse(0, byte) + mouse(0, byte, up=True))
        there.until_seen(lambda lines: any("request.header.request_api_key" in line for line in lines))
        there.send(mouse(WHEEL_DOWN, row) * 60)
        there.until_seen(lambda lines: any("DeleteTopics" in line for line in lines[: border[1]]))
        there.send(mouse(0, border) + mouse(MOVED, above) + mouse(0, above, up=True))
        there.until_seen(lambda lines: "bytes" in lines[above[1]])
        there.send("q")
        there.rest()
        assert there.process.wait(20) == 0
    panes = json.loads((tmp_path / "kdissect" / "panes.json").read_text())
    assert panes["list_share"] < 0.4
