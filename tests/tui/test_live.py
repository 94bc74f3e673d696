"""The main screen of a live capture on the loopback interface."""

import asyncio
import math
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Input, Static

import dissector
from dissector.capture.live import CaptureSettings, Recording, recording_source
from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.probe.servers import frame, serving
from tests.proxy_server.proxies import forked
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.screens.diff_screen import DiffScreen
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import LiveDetailScreen
from tui.widgets.sequence_view import SequenceView

pytestmark = needs_rights


class Live(Screen):
    """The live screen under test."""

    @property
    def title(self) -> str:
        return "".join(str(title.render()) for title in self.main.query("#title").results(Static))


@asynccontextmanager
async def watched(port: int, path: str = "") -> AsyncIterator[tuple[Live, Recording]]:
    with ExitStack() as opened:

        def begin(wanted: CaptureSettings) -> tuple[Capture, Recording, CaptureSettings]:
            recording = opened.enter_context(Recording(wanted, forked(wanted)))
            return opened.enter_context(Capture([recording_source(recording)])), recording, wanted

        capture, recording, wanted = begin(CaptureSettings("lo", (port,), "", promiscuous=False, path=path))
        async with KDissectApp(LiveScreen(capture, recording, wanted, begin)).run_test(size=(120, 40)) as pilot:
            screen = Live(pilot)
            yield screen, recording
            recording.stop()
            if isinstance(screen.main, LiveScreen):
                screen.main._recording.stop()


@pytest.mark.long
async def test_rows_appear_and_the_cursor_follows_while_it_is_on_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # a slow start is not told from no traffic otherwise
    monkeypatch.setattr("tui.screens.live_screen.PATIENCE", math.inf)
    with broker() as port:
        async with watched(port) as (screen, _):
            await screen.until(lambda: f"capturing on lo, port {port}" in screen.lines())
            await asyncio.to_thread(talk, port, 5)
            await screen.until(lambda: "5 exchanges" in screen.title)
            assert screen.title.startswith(f"● live lo:{port}")
            assert screen.row == 4
            await asyncio.to_thread(talk, port, 5)
            await screen.until(lambda: screen.row == 9)
            await screen.pilot.press("k")
            await asyncio.to_thread(talk, port, 5)
            await screen.until(lambda: "15 exchanges" in screen.title and "▼ 5 new" in screen.title)
            assert screen.row == 8
            await screen.pilot.press("G")
            await screen.until(lambda: "new" not in screen.title)
            await asyncio.to_thread(talk, port, 5)
            await screen.until(lambda: screen.row == 19)
            assert "Metadata" in screen.lines()


@pytest.mark.exhaustive
async def test_the_title_has_rates_latencies_and_losses_at_every_size() -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            await asyncio.to_thread(talk, port, 20)
            await screen.until(lambda: "p50 " in screen.title)
            await screen.until(lambda: "0 in flight" in screen.title)
            assert "/s · " in screen.title
            assert "0 packets dropped" in screen.title
            assert "with AF_PACKET" in screen.title
            await screen.pilot.resize_terminal(60, 20)
            await asyncio.to_thread(talk, port, 20)
            await screen.until(lambda: "40 exchanges" in screen.title and "p50 " in screen.title)
            assert all(len(line) <= 58 for line in screen.title.splitlines())


@pytest.mark.exhaustive
async def test_the_selected_field_stays_while_rows_come_and_escape_does_not_end_the_capture() -> None:
    with broker() as port:
        async with watched(port) as (screen, recording):
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: screen.row == 2)
            await screen.pilot.press("enter", "down")
            node = screen.main.model.node
            assert node is not None
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: "6 exchanges" in screen.title)
            assert (screen.row, screen.main.model.node) == (2, node)
            await screen.pilot.press("shift+tab", "escape", "G")
            assert not recording.stopping
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: screen.row == 8)


@pytest.mark.long
async def test_a_frozen_screen_stands_still_and_then_has_all_and_cleared_rows_come_back_with_escape() -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: screen.row == 2)
            await screen.pilot.press("space")
            await asyncio.to_thread(talk, port, 4)
            await screen.until(lambda: "▼ 4 new" in screen.title)
            assert "❚❚ frozen" in screen.title
            assert (screen.row, len(screen.main.view)) == (2, 3)
            await screen.pilot.press("space")
            await screen.until(lambda: screen.row == 6)
            assert "frozen" not in screen.title
            assert "new" not in screen.title
            for pane in (screen.main.field_tree, screen.main.bytes_pane, screen.main.exchange_list):
                pane.focus()
                await screen.pilot.pause()
                await screen.pilot.press("space")
                assert "❚❚ frozen" in screen.title, pane
                await screen.pilot.press("space")
                assert "frozen" not in screen.title, pane
            await screen.pilot.press("X")
            assert len(screen.main.view) == 0
            assert "7 exchanges · 0 shown" in screen.title
            await asyncio.to_thread(talk, port, 2)
            await screen.until(lambda: "9 exchanges · 2 shown" in screen.title)
            assert screen.main.view.rows.tolist() == [7, 8]
            await screen.until(lambda: screen.main.number == 8)
            assert screen.main.escape_order()[-1].__name__ == "restore_cleared"
            await screen.pilot.press("escape")
            assert len(screen.main.view) == 9
            assert "shown" not in screen.title


@pytest.mark.exhaustive
async def test_rows_that_came_while_the_screen_was_frozen_are_not_cleared() -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: screen.row == 2)
            await screen.pilot.press("space")
            await asyncio.to_thread(talk, port, 4)
            await screen.until(lambda: "▼ 4 new" in screen.title)
            await screen.pilot.press("X")
            assert len(screen.main.view) == 0
            await screen.pilot.press("space")
            await screen.until(lambda: screen.main.view.rows.tolist() == [3, 4, 5, 6])


@pytest.mark.long
async def test_packets_are_saved_meanwhile_and_the_screen_stays_when_the_capture_ends(tmp_path: Path) -> None:
    out = tmp_path / "some.pcapng"
    with broker() as port:
        async with watched(port) as (screen, recording):
            await asyncio.to_thread(talk, port, 5)
            await screen.until(lambda: "5 exchanges" in screen.title)
            for times in (1, 2):
                await screen.pilot.press("w")
                screen.pilot.app.screen.query_one(Input).value = str(out)
                await screen.pilot.press("enter")
                await screen.until(lambda times=times: len(screen.notifications()) == times)
            await screen.pilot.press("x")
            await screen.until(lambda: len(screen.notifications()) == 3)
            saved, exists, waits = screen.notifications()
            assert saved.startswith("saved ")
            assert out.stat().st_mode == 0o100600
            assert exists.endswith("file exists")
            assert waits.startswith("still capturing"), "an export needs the whole capture"
            await screen.pilot.press("ctrl+e")
            await screen.until(lambda: screen.title.startswith("○ ended"))
            assert recording.stopping
            assert len(screen.main.view) == 5
            await screen.pilot.press("g")
            await screen.until(lambda: screen.row == 0)
            assert screen.main.model.number == 0
            await screen.pilot.press("x")
            await screen.until(lambda: screen.pilot.app.screen is not screen.main)
    with Capture([str(out)]) as capture:
        assert len(list(capture.exchanges())) == 5


@pytest.mark.long
async def test_silence_is_explained_on_the_screen() -> None:
    with broker() as port:
        unused = port
    async with watched(unused) as (screen, _):
        await screen.until(lambda: "nothing on this machine listens there" in screen.lines())


FAILED = {"throttle_time_ms": 0, "error_code": 15, "error_message": None, "node_id": -1, "host": "", "port": -1}


def _refuse(connection: socket.socket) -> None:
    while True:
        number = int.from_bytes(frame(connection)[4:8], "big")
        body = FAILED if number % 2 else FAILED | {"error_code": 0}
        connection.sendall(dissector.encode_response("FindCoordinator", 1, body, correlation_id=number))


def _ask(port: int, count: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for number in range(count):
            body = {"key": "g", "key_type": 0}
            client.sendall(dissector.encode_request("FindCoordinator", 1, body, correlation_id=number, client_id="c"))
            frame(client)


@pytest.mark.exhaustive
async def test_errors_of_the_last_seconds_are_counted() -> None:
    with serving(_refuse) as address:
        port = int(address.rpartition(":")[2])
        async with watched(port) as (screen, _):
            await asyncio.to_thread(_ask, port, 8)
            await screen.until(lambda: "4 errors in 5 s" in screen.title)
            await screen.until(lambda: "0 errors in 5 s" in screen.title)


@pytest.mark.exhaustive
async def test_screens_of_the_whole_capture_have_a_time_and_load_new_rows_on_request() -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: "3 exchanges" in screen.title)
            for key in ("D", "o", "L"):
                await screen.pilot.press(key)
                await screen.until(lambda: "as of " in screen.lines())
                await asyncio.to_thread(talk, port, 4)
                await screen.until(lambda: ", 4 new: R" in screen.lines())
                if key == "D":
                    await load_new_messages(screen)
                else:
                    await screen.pilot.press("R")
                await screen.until(lambda: "new: R" not in screen.lines() and "○" not in screen.lines())
                assert key != "o" or "11 exchanges" in screen.lines()
                await screen.pilot.press("q")
                await screen.until(lambda: screen.pilot.app.screen is screen.main)


async def load_new_messages(screen: Live) -> None:
    """Press R on the sequence diagram, which keeps the message under its cursor."""
    view = screen.pilot.app.screen.query_one(SequenceView)
    await screen.until(lambda: view.diagram is not None)
    assert view.diagram is not None
    assert len(view.diagram) == 6
    await screen.pilot.press("g", "r")
    await screen.pilot.press("R")
    await screen.until(lambda: view.diagram is not None and len(view.diagram) == 14)
    assert view.diagram is not None
    assert (int(view.diagram.rows[view.cursor]), bool(view.diagram.is_request[view.cursor])) == (0, False)


@pytest.mark.exhaustive
async def test_what_grows_is_compared_up_to_its_last_row_and_goes_on_growing() -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            for first in (0, 10):
                await asyncio.to_thread(talk, port, 4, first=first)
            await screen.until(lambda: "8 exchanges" in screen.title)
            await screen.pilot.press("p")
            await screen.until(lambda: "C2 ⇄ C1 tests" in screen.lines())
            await screen.pilot.press("enter")
            await screen.until(lambda: "the same" in screen.lines())
            front = screen.pilot.app.screen
            assert isinstance(front, DiffScreen)
            assert [end.label for end in front.ends] == ["C2 tests, rows to 8", "C1 tests, rows to 8"]
            await asyncio.to_thread(talk, port, 4, first=20)
            await screen.until(lambda: len(screen.main.capture) == 12)
            await screen.pilot.press("s")
            await screen.until(lambda: front.ends[0].label.startswith("C1") and "the same" in screen.lines())
            assert front.comparison is not None
            assert [side.exchanges for side in (front.comparison.a, front.comparison.b)] == [4, 4]
            await screen.pilot.press("o")  # the rows of this moment, which the screen below goes on to read
            await screen.until(lambda: isinstance(screen.pilot.app.screen, LiveDetailScreen))
            await asyncio.to_thread(talk, port, 4, first=30)
            detail = screen.pilot.app.screen
            assert isinstance(detail, LiveDetailScreen)
            await screen.pilot.press("q", "q")
            await screen.until(lambda: "16 exchanges" in screen.title)
            await screen.pilot.press("g", "m", "G", "equals_sign")
            await screen.until(lambda: "all fields are equal" in screen.lines())
            await screen.pilot.press("escape")
            await screen.until(lambda: screen.pilot.app.screen is screen.main)


@pytest.mark.exhaustive
async def test_the_title_shows_that_rows_are_analyzed(monkeypatch: pytest.MonkeyPatch) -> None:
    with broker() as port:
        async with watched(port) as (screen, _):
            go = threading.Event()
            look = screen.main.findings.model.analyze

            def held() -> Iterator[bool]:
                for found in look():
                    go.wait(20)
                    yield found

            monkeypatch.setattr(screen.main.findings.model, "analyze", held)
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: "analyzing " in screen.title)
            go.set()
            await screen.until(lambda: "analyzing " not in screen.title)


@pytest.mark.exhaustive
async def test_another_capture_starts_after_one_that_ended_and_was_saved_or_not(tmp_path: Path) -> None:
    with broker() as port:
        async with watched(port) as (screen, first):
            await asyncio.to_thread(talk, port, 3)
            await screen.until(lambda: "3 exchanges" in screen.title)
            await screen.pilot.press("ctrl+e")
            await screen.until(lambda: screen.title.startswith("○ ended"))
            await screen.pilot.press("ctrl+e")
            await screen.until(lambda: "The packets are not saved" in screen.lines())
            await screen.pilot.press("enter")
            await screen.until(lambda: screen.title.startswith("● live") and "0 exchanges" in screen.title)
            assert first.ended
            await asyncio.to_thread(talk, port, 2)
            await screen.until(lambda: "2 exchanges" in screen.title)
            await screen.pilot.press("ctrl+e")
            await screen.until(lambda: screen.title.startswith("○ ended"))
            await screen.pilot.press("ctrl+e", "down", "enter")
            await screen.until(lambda: screen.pilot.app.screen.query(Input))
            screen.pilot.app.screen.query_one(Input).value = str(tmp_path / "some.pcapng")
            await screen.pilot.press("enter")
            await screen.until(screen.notifications)
            await screen.pilot.press("ctrl+e")
            await screen.until(lambda: screen.title.startswith("● live"))
    with Capture([str(tmp_path / "some.pcapng")]) as capture:
        assert len(list(capture.exchanges())) == 2


@pytest.mark.long
async def test_saved_packets_need_no_confirmation_and_files_are_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "kept.pcapng"
    with broker() as port:
        async with watched(port, str(out)) as (screen, _):
            for count in (3, 2):
                await asyncio.to_thread(talk, port, count)
                await screen.until(lambda count=count: f"{count} exchanges" in screen.title)
                await screen.pilot.press("ctrl+e")
                await screen.until(lambda: screen.title.startswith("○ ended"))
                await screen.pilot.press("ctrl+e")
                await screen.until(lambda: "0 exchanges" in screen.title)
    counts = []
    for name in ("kept.pcapng", "kept-2.pcapng", "kept-3.pcapng"):
        with Capture([str(tmp_path / name)]) as capture:
            counts.append(len(list(capture.exchanges())))
    assert counts == [3, 2, 0]
