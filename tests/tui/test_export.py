"""Export from the main screen, in every format."""

import csv
import json
import shlex
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from dissector.capture_session import Capture
from dissector.core.text import byte_size
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.shared_screens import SharedScreens
from tui.screens.export_dialog import FORMATS, ExportDialog
from tui.screens.main_screen import MainScreen
from tui.screens.write_dialog import WriteDialog

BEHIND_TLS = str(PCAPS / "tls/java-1.2-mtls.pcapng")
SASL = str(PCAPS / "java-sasl-plain.pcapng")
NAMES = [each.entry.label for each in FORMATS]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def export(screen: Screen, rows: int, form: str, *, contents: int = 0, name: str = "") -> str:
    """Export through the dialog; return the notification. `rows` and `contents` are indices of their choices."""
    await screen.pilot.press("x")
    await screen.pilot.pause()
    for count in (rows, NAMES.index(form), contents):
        await screen.pilot.press(*["right"] * count, "down")
    if name:
        screen.pilot.app.screen.query_one(Input).value = name
    await screen.pilot.press("enter")
    await screen.settle()
    assert isinstance(screen.pilot.app.screen, MainScreen)
    return screen.notifications()[-1]


@pytest.mark.long
async def test_w_and_x_write_csv_and_say_what_a_file_opens_as(shared: SharedScreens, here: Path) -> None:
    async with shared.opened(JAVA) as screen:
        outcome = await export(screen, 0, "CSV", name="all.csv")
        assert outcome == f"wrote all.csv, {size_of(here / 'all.csv')}", "a table does not open as rows"
        await screen.press("colon", "w", "space", *"shown", "full_stop", *"csv")
        await screen.pilot.press("enter")
        await screen.pilot.pause()
        await screen.pilot.press("enter")  # unchanged
        await screen.settle()
        assert await export(screen, 1, "Transcript", name="one.txt") == (
            f"wrote one.txt, {size_of(here / 'one.txt')}; it reopens as 1 row"
        )
    text = (here / "all.csv").read_text()
    assert text == (here / "shown.csv").read_text()
    lines = list(csv.DictReader(text.splitlines()))
    assert [line["number"] for line in lines] == [str(number + 1) for number in range(60)]
    assert lines[1]["api"] == "Metadata"


@pytest.mark.long
async def test_marked_rows_are_exported_as_a_capture_with_marks_and_comments(shared: SharedScreens, here: Path) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("2", "G", "m", "5", "G", "m", "semicolon", *"look", "enter")
        outcome = await export(screen, 0, "Capture")
        written = f"wrote java-marked.pcapng, {size_of(here / 'java-marked.pcapng')}"
        assert outcome == f"{written}; it reopens as 6 rows: 4 gaps between them"
        was = [screen.main.capture.exchange(row).row.info for row in (1, 4)]
    with Capture([str(here / "java-marked.pcapng")]) as copy:
        rows = [exchange.row for exchange in copy.exchanges()]
        assert [row.info for row in rows if row.kind == "exchange"] == was
        written = "\n".join(copy.comments.values()).splitlines()
    assert "marked" in written
    assert "look" in written


def size_of(path: Path) -> str:
    return byte_size(path.stat().st_size)


@pytest.mark.exhaustive
async def test_filtered_rows_are_exported_as_the_json_that_show_prints(shared: SharedScreens, here: Path) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("slash", *"api == Fetch", "enter")
        shown = len(screen.main.view)
        await export(screen, 0, "JSON")
    printed = kdissect("show", JAVA, "-Y", "api == Fetch", "-f", "json").stdout
    assert (here / "java-shown.json").read_bytes() == printed
    assert printed.count(b"\n") == shown > 1


@pytest.mark.exhaustive
async def test_one_row_is_exported_in_each_readable_format(shared: SharedScreens, here: Path) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("3", "G")
        request = screen.main.capture.exchange(2).request
        assert request is not None
        for form in ("Transcript", "Mermaid", "SVG", "pytest"):
            await export(screen, 1, form)
            [path] = here.glob("java-3.*")
            text = path.read_text()
            path.unlink()
            match form:
                case "Transcript":
                    assert request.data.hex() in "".join(text.split())
                case "Mermaid":
                    assert text.startswith("sequenceDiagram")
                case "SVG":
                    assert ElementTree.fromstring(text).tag.endswith("svg")
                case _:
                    compile(text, str(path), "exec")
                    assert "def test_" in text


@pytest.mark.exhaustive
async def test_the_exported_command_shows_the_same_rows(
    shared: SharedScreens, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("2", "G", "m", "3", "G", "m", "7", "G", "m")
        await export(screen, 0, "Command")
    line = (here / "java-marked.sh").read_text()
    monkeypatch.chdir(Path(__file__).parents[2])
    done = kdissect(*shlex.split(line)[1:])
    assert [json.loads(each)["number"] for each in done.stdout.splitlines()] == [2, 3, 7]


@pytest.mark.long
async def test_a_redacted_export_has_no_secret_and_no_comment(here: Path) -> None:
    with Capture([SASL], show_secrets=True) as capture:
        topics = {name for each in capture.exchanges() for name in _topics(each.request and each.request.body)}
    assert topics
    async with opened(SASL) as screen:
        await screen.press("semicolon", *"quoted", "enter")
        for form in ("Capture", "JSON"):
            await export(screen, 0, form, contents=1)
            [path] = here.glob("java-sasl-plain-all-redacted.*")
            data = path.read_bytes()
            path.unlink()
            assert not [name for name in {*topics, "quoted"} if name.encode() in data]
            assert data


def _topics(body: object) -> Iterator[str]:
    topics = body.get("topics") if isinstance(body, dict) else None
    for each in topics if isinstance(topics, list) else []:
        if isinstance(each, dict) and each.get("name"):
            yield str(each["name"])


@pytest.mark.long
async def test_encrypted_connections_are_exported_with_or_without_their_secrets_or_decrypted(here: Path) -> None:
    made = {"with-secrets": {"exchange"}, "encrypted": set(), "decrypted": {"exchange"}}
    async with opened(BEHIND_TLS) as screen:
        notes = [await export(screen, 0, "Capture", contents=at) for at in range(len(made))]
    assert ["the file has the secrets of 9 TLS connections" in note for note in notes] == [True, False, False]
    protocols = {}
    for name, kinds in made.items():
        with Capture([str(here / f"java-1.2-mtls-all-{name}.pcapng")]) as copy:
            assert {exchange.row.kind for exchange in copy.exchanges()} == kinds
            protocols[name] = "TLS" in copy.connections.protocols
            assert (len(copy) == 36) == bool(kinds)
    assert not protocols["decrypted"]


@pytest.mark.long
async def test_no_file_is_overwritten_and_an_invalid_name_is_reported(shared: SharedScreens, here: Path) -> None:
    (here / "there.txt").write_text("mine")
    async with shared.opened(JAVA) as screen:
        assert await export(screen, 1, "Transcript", name="there.txt") == "not written: there.txt: file exists"
        assert "there is no folder" in await export(screen, 1, "Transcript", name="no/folder.txt")
    assert (here / "there.txt").read_text() == "mine"


@pytest.mark.exhaustive
async def test_entries_of_kafka_files_are_not_exported_as_a_capture(here: Path) -> None:
    segment = str(next((PCAPS / "segments").rglob("*.log")))
    async with opened(segment) as screen:
        notification = await export(screen, 0, "Capture")
        assert notification.startswith("not written: no packets carried")
    assert not list(here.iterdir())


async def pressed(screen: Screen, *keys: str) -> None:
    """Press keys in a dialog that a worker waits for."""
    await screen.pilot.press(*keys)
    await screen.pilot.pause()


@pytest.mark.long
async def test_the_dialog_shows_what_enter_writes(shared: SharedScreens, here: Path) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("2", "G", "m")
        await pressed(screen, "x")
        dialog = screen.pilot.app.screen
        assert isinstance(dialog, ExportDialog)
        for words in (
            "‹ Marked, 1 row ›",
            "‹ Capture ›",
            "‹ Unchanged ›  all bytes, including secrets",
            "java-marked.pcapng",
        ):
            assert words in screen.lines()
        await pressed(screen, "l", "j", "S", "j", "h")
        for words in ("‹ All, 60 rows ›", "‹ SVG ›", "‹ Redacted ›", "java-all-redacted.svg"):
            assert words in screen.lines()
        await pressed(screen, "k", "C")
        for words in ("‹ Command ›", "  Unchanged    as on the screen", "java-all.sh"):
            assert words in screen.lines(), "a command can't be redacted"
        await pressed(screen, "C", "C")
        for words in ("‹ CSV ›", "‹ Redacted ›", "java-all-redacted.csv"):
            assert words in screen.lines(), "what was chosen is chosen where it can be"
        await pressed(screen, "left", "left")
        await pressed(screen, "down", "down", "end", "x", "left")
        assert "java-all-redacted.txtx" in screen.lines()
        await pressed(screen, "up", "up", "right")
        assert "java-all-redacted.txtx" in screen.lines(), "the user's name stays"
        await screen.pilot.click("#export-rows")
        await screen.pilot.pause()
        assert "‹ Only row 2 ›" in screen.lines()
        await pressed(screen, "escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)
    assert not list(here.iterdir())


@pytest.mark.long
async def test_escape_stops_writing_and_removes_the_file(here: Path) -> None:
    def endless(_: object) -> Iterator[bytes]:
        while True:
            yield bytes(1 << 10)

    async with opened(JAVA) as screen:
        ended: list[str | None] = []
        screen.pilot.app.push_screen(WriteDialog(here / "endless", endless), ended.append)
        await screen.until(lambda: "so far" in screen.lines())
        assert (here / "endless").stat().st_size
        await screen.pilot.press("escape")
        await screen.settle()
        await screen.until(lambda: not list(here.iterdir()))
        assert ended == [None]


@pytest.mark.exhaustive
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
        assert ended == [f"wrote {here / 'late'}, 9 B"]
