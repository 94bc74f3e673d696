"""Export from the main screen, in every format."""

import json
import shlex
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from dissector.capture_session import Capture
from dissector.core.text import size
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tui.features.export import FORMATS
from tui.screens.main_screen import MainScreen
from tui.screens.write_dialog import WriteDialog

SASL = str(PCAPS / "java-sasl-plain.pcapng")
NAMES = [each.entry.label for each in FORMATS]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def choose(screen: Screen, down: int) -> None:
    for _ in range(down):
        await screen.pilot.press("down")
    await screen.pilot.press("enter")
    await screen.pilot.pause()


async def export(screen: Screen, rows: int, form: str, *, redact: bool = False, name: str = "") -> str:
    """Export through the menus; return the notification. `rows` is the index in the first menu."""
    await screen.pilot.press("x")
    await screen.pilot.pause()
    await choose(screen, rows)
    await choose(screen, NAMES.index(form))
    if form != "Command":
        await choose(screen, int(redact))
    if name:
        screen.pilot.app.screen.query_one(Input).value = name
    await screen.pilot.press("enter")
    await screen.settle()
    assert isinstance(screen.pilot.app.screen, MainScreen)
    return [each.message for each in screen.pilot.app._notifications][-1]


async def test_marked_rows_become_a_capture_with_marks_and_comments(here: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("2", "G", "m", "5", "G", "m", "semicolon", *"look", "enter")
        assert await export(screen, 0, "Capture") == f"wrote java-marked.pcapng, {told(here / 'java-marked.pcapng')}"
        was = [screen.main.capture.exchange(row).row.info for row in (1, 4)]
    with Capture([str(here / "java-marked.pcapng")]) as copy:
        rows = [exchange.row for exchange in copy.exchanges()]
        assert [row.info for row in rows if row.kind == "exchange"] == was
        written = "\n".join(copy.comments.values()).splitlines()
    assert "marked" in written
    assert "look" in written


def told(path: Path) -> str:
    return f"{size(path.stat().st_size)}B"


async def test_the_rows_that_a_filter_shows_become_json_as_show_prints_it(here: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("slash", *"api == Fetch", "enter")
        shown = len(screen.main.view)
        await export(screen, 0, "JSON")
    words = [sys.executable, "-m", "dissector.cli.main", "show", JAVA, "-Y", "api == Fetch", "-f", "json"]
    printed = subprocess.run(words, capture_output=True, check=True, cwd=Path(__file__).parents[2]).stdout
    assert (here / "java-shown.json").read_bytes() == printed
    assert printed.count(b"\n") == shown > 1


@pytest.mark.parametrize("form", ["Transcript", "Mermaid", "SVG", "pytest"])
async def test_this_row_alone_in_a_form_that_people_read(form: str, here: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("3", "G")
        await export(screen, 1, form)
        request = screen.main.capture.exchange(2).request
        assert request is not None
        frame = request.data.hex()
    [path] = here.glob("java-3.*")
    text = path.read_text()
    match form:
        case "Transcript":
            assert frame in "".join(text.split())
        case "Mermaid":
            assert text.startswith("sequenceDiagram")
        case "SVG":
            assert ElementTree.fromstring(text).tag.endswith("svg")
        case _:
            compile(text, str(path), "exec")
            assert "def test_" in text


async def test_the_command_shows_the_same_rows(here: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("2", "G", "m", "3", "G", "m", "7", "G", "m")
        await export(screen, 0, "Command")
    line = (here / "java-marked.sh").read_text()
    words = [sys.executable, "-m", "dissector.cli.main", *shlex.split(line)[1:]]
    done = subprocess.run(words, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    assert [json.loads(each)["number"] for each in done.stdout.splitlines()] == [2, 3, 7]


@pytest.mark.parametrize("form", ["Capture", "JSON"])
async def test_what_is_redacted_has_no_secret_and_no_comment(form: str, here: Path) -> None:
    with Capture([SASL], show_secrets=True) as capture:
        topics = {name for each in capture.exchanges() for name in _topics(each.request and each.request.body)}
    assert topics
    async with opened(SASL) as screen:
        await screen.press("semicolon", *"quoted", "enter")
        await export(screen, 0, form, redact=True)
    [path] = here.glob("java-sasl-plain-all-redacted.*")
    data = path.read_bytes()
    assert not [name for name in {*topics, "quoted"} if name.encode() in data]
    assert data


def _topics(body: object) -> Iterator[str]:
    topics = body.get("topics") if isinstance(body, dict) else None
    for each in topics if isinstance(topics, list) else []:
        if isinstance(each, dict) and each.get("name"):
            yield str(each["name"])


async def test_no_file_is_overwritten_and_an_invalid_name_is_reported(here: Path) -> None:
    (here / "there.txt").write_text("mine")
    async with opened(JAVA) as screen:
        assert await export(screen, 1, "Transcript", name="there.txt") == "not written: there.txt: file exists"
        assert "no such file" in await export(screen, 1, "Transcript", name="no/folder.txt")
    assert (here / "there.txt").read_text() == "mine"


async def test_entries_of_files_without_packets_are_no_capture(here: Path) -> None:
    segment = str(next((PCAPS / "segments").rglob("*.log")))
    async with opened(segment) as screen:
        said = await export(screen, 0, "Capture")
        assert said.startswith("not written: no packets carried")
    assert not list(here.iterdir())


async def test_leaving_any_question_writes_nothing(here: Path) -> None:
    async with opened(JAVA) as screen:
        for steps in range(4):
            await screen.pilot.press("x")
            await screen.pilot.pause()
            for _ in range(steps):
                await choose(screen, 0)
            await screen.pilot.press("escape")
            await screen.settle()
            assert isinstance(screen.pilot.app.screen, MainScreen)
    assert not list(here.iterdir())


async def test_writing_is_stopped_and_what_was_begun_goes_away(here: Path) -> None:
    def endless(_: object) -> Iterator[bytes]:
        while True:
            yield bytes(1 << 10)

    async with opened(JAVA) as screen:
        ended: list[str | None] = []
        screen.pilot.app.push_screen(WriteDialog(here / "endless", endless), ended.append)
        while "so far" not in screen.lines():
            await screen.pilot.pause(0.05)
        assert (here / "endless").stat().st_size
        await screen.pilot.press("escape")
        await screen.settle()
        while list(here.iterdir()):
            await screen.pilot.pause(0.05)
        assert ended == [None]


async def test_a_file_finished_below_another_screen_is_reported_when_that_closes(here: Path) -> None:
    go_on = threading.Event()

    def late(_: object) -> Iterator[bytes]:
        go_on.wait(60)
        yield b"all of it"

    async with opened(JAVA) as screen:
        ended: list[str | None] = []
        app = screen.pilot.app
        app.push_screen(WriteDialog(here / "late", late), ended.append)
        await screen.pilot.press("ctrl+p")
        await screen.until(lambda: isinstance(app.screen, CommandPalette))
        go_on.set()
        await screen.settle()
        await screen.pilot.press("escape")
        await screen.until(lambda: app.screen is screen.main)
        assert ended == [f"wrote {here / 'late'}, 9B"]
