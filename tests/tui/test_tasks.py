"""Tasks of a debugging day, each with the keys that it takes from the first row on: at most eight.

`docs/tasks.md` has the same table.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.conftest import PCAPS
from tests.tui.main_driver import Screen, opened
from tui.features.sort import SortFeature
from tui.screens.diff_screen import DiffScreen
from tui.screens.main_screen import MainScreen

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "tasks.md"
MOST_KEYS: Final = 6
WRITTEN: Final = "java-marked.pcapng"


class Task(NamedTuple):
    """What one wants to know, on which recording, with which keys, and what the screen shows then."""

    words: str
    capture: str
    keys: str
    shows: str
    holds: Callable[[Screen], object] = bool


def _is_filtered(screen: Screen) -> bool:
    return screen.main.view.is_filtered


def _is_compared(screen: Screen) -> bool:
    front = screen.pilot.app.screen
    return isinstance(front, DiffScreen) and front.comparison is not None


TASKS: Final = (
    Task("Find the first error, and what to do about it", "java", "e i", "What to do"),
    Task("Go to the field with the error", "java", "F enter j enter", "error_code",
         lambda screen: screen.path.endswith("error_code")),
    Task("Read the response to a request", "java", "r", "api_keys",
         lambda screen: screen.main.model.side == "response"),
    Task("See the next exchange of the same connection", "java", "]", "▸",
         lambda screen: screen.main.capture.rows.connection_of(screen.row) == 1),
    Task("Show only one connection", "java", "f", "conn == 1", _is_filtered),
    Task("Show all exchanges with the API of this one", "java", "a", "api == ApiVersions", _is_filtered),
    Task("Show all exchanges with the same value of a field, and stay on the field", "java", "enter 5 j a",
         "request.header.client_id == ", lambda screen: screen.path == "header.client_id"),
    Task("Clear a filter, and bring it back", "java", "a esc u", "api == ApiVersions", _is_filtered),
    Task("Find a record by its text, even in a zstd batch", "librdkafka-kip848", "ctrl+f r space 1 7 enter", "1 of ",
         lambda screen: screen.path.endswith("records[4].value")),
    Task("See the content of a compressed batch, as bytes", "java", "1 4 G b", "decompressed"),
    Task("Copy a field's path for a filter or --fields", "java", "enter j j y f", "copied the path",
         lambda screen: screen.pilot.app.clipboard == "request.header.request_api_key"),
    Task("Make a field a column of the list", "java", "enter j j c", "request_api_key"),
    Task("Go to an exchange by its number", "java", "4 2 G", "▸", lambda screen: screen.row == 41),
    Task("See the slowest exchanges first", "java", "z j enter", "Latency▼",
         lambda screen: screen.main.capture.exchange(screen.main.view.number(0)).row.latency_ns
         == max(each.row.latency_ns or 0 for each in screen.main.capture.exchanges())),
    Task("Show times in UTC", "java", "t t t", "UTC time of day"),
    Task("Export two exchanges as a capture", "java", "m j m x enter", f"wrote {WRITTEN}",
         lambda _: Path(WRITTEN).is_file()),
    Task("Go to a time", "java", "colon plus 2 s enter", "▸", lambda screen: screen.row > 0),
    Task("Open the packet of a row in Wireshark", "java", "4 2 G y w", "copied the command that opens the packet",
         lambda screen: screen.pilot.app.clipboard
         == f"wireshark -g {screen.main.capture.exchange(41).row.packet} -r {PCAPS / 'java.pcapng'}"),
    Task("Find out why a group rebalances", "trouble-rebalance-loop", "L", "restarts-0 left: its consumer was closed"),
    Task("See which clients get errors, and when", "trouble-rebalance-loop", "F enter", "restarts-4"),
    Task("See who talks to whom, in order", "java-classic", "D", "node 1"),
    Task("Follow a partition to its next exchange", "java-classic", "2 0 G J enter", "java-classic[",
         lambda screen: screen.row > 19),
    Task("Compare a client with the one most like it", "java-classic", "1 9 G p enter", "12 differences", _is_compared),
    Task("Compare two connections", "java-classic", "p c 4 enter", "A C1 adminclient-1", _is_compared),
    Task("See two exchanges side by side", "java-classic", "2 0 G m j =", "partitions[1].fetch_offset", _is_compared),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", list(dict.fromkeys(task.capture for task in TASKS)))
async def test_each_task_takes_its_keys(name: str) -> None:
    """In one run for all tasks with a recording: after each, the screen is as it was opened."""
    async with opened(str(PCAPS / f"{name}.pcapng"), size=(120, 40)) as screen:
        for task in (each for each in TASKS if each.capture == name):
            await screen.pilot.press(*task.keys.replace("esc", "escape").split())
            await screen.until(partial(_is_done, screen, task))
            await _restore(screen)


def _is_done(screen: Screen, task: Task) -> object:
    return task.shows in screen.lines() + "\n".join(screen.notifications()) and task.holds(screen)


async def _restore(screen: Screen) -> None:
    """Close what is in front, and undo what a task did to the list."""
    while not isinstance(screen.pilot.app.screen, MainScreen):
        await screen.press("escape")
    main = screen.main
    main.filter.apply("")
    main.feature(SortFeature).sort_by(None)
    main.list_appearance.choose_columns(None)
    main.appearance.marks.marked.clear()
    main.query_one("#list").focus()
    screen.fields.cursor_line = -1
    await screen.press("G", "g")  # another row and back: no field is selected
    if main.model.side == "response":
        await screen.press("r")


def test_no_task_takes_more_than_six_keys() -> None:
    assert len(TASKS) == 25
    assert [task.words for task in TASKS if len(task.keys.split()) > MOST_KEYS] == []


def test_the_document_has_these_tasks_and_keys() -> None:
    row = re.compile(r"^\| \d+ \| (.+?) \| `(.+?)` \| (\d+) \|$", re.MULTILINE)
    found = row.findall(DOCUMENT.read_text(encoding="utf-8"))
    assert found == [(task.words, task.keys, str(len(task.keys.split()))) for task in TASKS]
