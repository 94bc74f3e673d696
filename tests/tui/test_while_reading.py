"""While the capture is read, however long it is: rows come, the cursor stays, keys work."""

import asyncio
import os
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.capture_session.exchange_index import ExchangeIndex
from dissector.exchange.model import Exchange, ExchangeRow
from tests.conftest import PCAPS
from tests.traffic import capture_of, conversation, exchanges
from tests.tui.main_driver import JAVA, Halting, Screen
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen


@pytest.mark.long
async def test_the_screen_works_while_the_capture_is_read() -> None:
    with Halting([JAVA]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.until(lambda: "50%" in screen.lines())
            await pilot.press("j", "j", "enter", "down", "down")
            await pilot.pause()
            assert screen.row == 2
            assert screen.path
            capture.may_end.set()
            await screen.settle()
            assert "100%" in screen.lines()
            assert screen.row == 2


@pytest.mark.exhaustive
async def test_timelines_open_while_the_capture_is_read_and_fill_when_it_is() -> None:
    with Halting([JAVA]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.until(lambda: "50%" in screen.lines())
            await pilot.press("L")
            await screen.until(lambda: "waiting until the capture is read" in screen.lines())
            capture.may_end.set()
            await screen.until(lambda: "JoinGroup" in screen.lines())


@pytest.mark.long
async def test_the_cursor_stays_with_its_row_when_rows_get_their_final_order() -> None:
    with Halting([str(PCAPS / "kafka-python-as-0.10-sasl.pcapng")]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.until(lambda: "50%" in screen.lines())
            await pilot.press(*["j"] * 9)
            await pilot.pause()
            assert screen.row == 9
            before = capture.exchange(9).row
            capture.may_end.set()
            await screen.settle()
            assert screen.row != 9
            assert capture.exchange(screen.row).row._replace(number=before.number) == before
            assert screen.main.model.number == screen.row


@pytest.mark.long
async def test_a_pipe_shows_its_rows_while_it_grows_and_what_was_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = (PCAPS / "java.pcapng").read_bytes()
    with Capture([str(pipe)]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test() as pilot:
            screen = Screen(pilot)
            with pipe.open("wb", buffering=0) as file:
                file.write(data[: len(data) // 2])
                await screen.until(lambda: len(capture) and "waiting" not in screen.lines())
                assert "%" not in screen.lines().splitlines()[0]
                file.write(data[len(data) // 2 :])
            await screen.settle()
            assert "100%" in screen.lines()


async def test_a_pipe_that_is_no_capture_ends_the_screen_with_an_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Capture([str(pipe)]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test() as pilot:
            await asyncio.to_thread(pipe.write_text, "just words")
            await Screen(pilot).until(lambda: app.error is not None)
        assert "neither pcap nor pcapng" in str(app.error)
        assert app.return_code == 2


class LongCapture(Capture):
    """A capture of five million rows, copies of the few that it really has."""

    decoded = 0

    def __len__(self) -> int:
        return 5_000_000 if super().__len__() else 0

    def row(self, number: int) -> ExchangeRow:
        self.decoded += 1
        return super().row(number % super().__len__())

    def exchange(self, number: int) -> Exchange:
        return super().exchange(number % super().__len__())


class Drawing(MainScreen):
    """Draws rows only."""

    def _rows_added(self, *, done: bool) -> None:
        pass


@pytest.mark.long
async def test_five_million_rows_cost_no_more_than_those_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExchangeIndex, "apis", lambda *_: {0})  # it reads the index, where there are only thirty
    with LongCapture([capture_of(tmp_path, conversation(exchanges(30)))]) as capture:
        async with KDissectApp(Drawing(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            await screen.press("G", "pageup", "pageup")
            assert 4_999_900 < screen.row < 5_000_000
            assert capture.decoded < 400
