"""The main screen, driven by keys and clicks on real captures."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from dissector.capture_file import Capture, Progress
from dissector.session.exchange import Exchange, Row
from tests.conftest import PCAPS
from tests.storage.test_files import LEDGER
from tests.traffic import Turn, capture_of, conversation, exchanges, pcap, request, response
from tui.app import KDissectApp
from tui.model import Model
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree

JAVA = str(PCAPS / "java.pcapng")


class Screen:
    """The screen in a test's words."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot

    @property
    def main(self) -> MainScreen:
        """The main screen, also where a menu is over it."""
        return next(screen for screen in self.pilot.app.screen_stack if isinstance(screen, MainScreen))

    @property
    def list(self) -> ExchangeList:
        return self.main.query_one(ExchangeList)

    @property
    def bytes(self) -> BytesPane:
        return self.main.query_one(BytesPane)

    @property
    def fields(self) -> FieldTree:
        return self.main.query_one(FieldTree)

    @property
    def row(self) -> int:
        return self.list.cursor

    @property
    def path(self) -> str:
        return self.main.model.node.path if self.main.model.node is not None else ""

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for it, not for all that runs; the bound is for a hang."""
        for _ in range(600):
            await self.pilot.pause(0.05)
            if true():
                return
        raise AssertionError(self.lines())

    def text(self, selector: str) -> str:
        return str(self.main.query_one(selector, Static).render())

    def lines(self) -> str:
        """All that is drawn, as text."""
        compositor = self.pilot.app.screen._compositor
        return "\n".join("".join(s.text for s in strip) for strip in compositor.render_strips())


@asynccontextmanager
async def opened(*paths: str, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with Capture(paths) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen


async def to(screen: Screen, api: str) -> None:
    """Go to the first exchange of an API."""
    capture = screen.main.model.capture
    screen.list.cursor = next(n for n in range(len(capture)) if capture.row(n).api == api)
    await screen.settle()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (160, 50), (200, 60)])
async def test_it_opens_at_every_size_with_list_fields_and_bytes(size: tuple[int, int]) -> None:
    async with opened(JAVA, size=size) as screen:
        drawn = screen.lines()
        assert "java.pcapng · 60 exchanges" in drawn
        for words in ("ApiVersions", "header", "0000", "Help", "Quit"):
            assert words in drawn


async def test_keys_move_through_the_list() -> None:
    async with opened(JAVA) as screen:
        last = len(screen.main.model.capture) - 1
        moves = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", last), ("g", 0), ("end", last), ("home", 0)]
        for keys, row in [*moves, ("4 2 G", 41), ("f7", 40), ("f8", 41)]:
            await screen.press(*keys.split())
            assert screen.row == row, keys
        await screen.press("pageup")
        assert screen.row < 41
        await screen.press("g", "k")
        assert screen.row == 0


async def test_the_list_follows_its_cursor() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.press("G")
        assert "DeleteTopics" in screen.lines()


async def test_enter_goes_to_the_fields_and_tab_round_the_panes() -> None:
    async with opened(JAVA) as screen:
        assert screen.main.focused is screen.list
        await screen.press("enter")
        assert screen.main.focused is screen.fields
        await screen.press("tab")
        assert screen.main.focused is screen.bytes
        await screen.press("tab")
        assert screen.main.focused is screen.list
        await screen.press("shift+tab")
        assert screen.main.focused is screen.bytes


async def test_r_shows_the_other_side() -> None:
    async with opened(JAVA) as screen:
        await screen.press("r")
        assert screen.main.model.side == "response"
        assert "error_code" in screen.lines()
        await screen.press("r")
        assert screen.main.model.side == "request"


async def test_brackets_stay_on_the_connection() -> None:
    async with opened(JAVA) as screen:
        await to(screen, "CreateTopics")
        capture = screen.main.model.capture
        before, connection = screen.row, capture.connection_of(screen.row)
        await screen.press("right_square_bracket")
        assert screen.row > before
        assert capture.connection_of(screen.row) == connection
        await screen.press("left_square_bracket")
        assert screen.row == before


async def test_e_goes_to_what_is_wrong() -> None:
    async with opened(JAVA) as screen:
        await screen.press("e")
        assert screen.main.model.exchange is not None
        assert "MEMBER_ID_REQUIRED" in screen.main.model.exchange.row.info
        assert "repeat JoinGroup" not in screen.main.model.exchange.row.info
        first = screen.row
        await screen.press("e")
        assert screen.row > first
        await screen.press("E")
        assert screen.row == first


async def test_a_field_lights_up_its_bytes_and_its_ancestors_more_faintly() -> None:
    async with opened(JAVA) as screen:
        await screen.press("enter", "g", "down", "down")
        assert screen.path == "header.request_api_key"
        assert screen.main.model.shades(0, 10) == [None] * 4 + [0, 0, 1, 1, 1, 1]
        assert "request.header.request_api_key · 18 = ApiVersions · INT16" in screen.text("#inspector")
        assert "versions 0+" in screen.text("#inspector")


async def test_a_byte_selects_its_field_by_key_and_by_click() -> None:
    async with opened(JAVA) as screen:
        await screen.press("tab", "tab")
        await screen.press(*["right"] * 8)
        assert screen.path == "header.correlation_id"
        assert screen.fields.cursor_node is not None
        assert screen.fields.cursor_node.data is screen.main.model.node
        assert "i32 " in screen.text("#inspector")
        for x in range(6, 40):
            offset = screen.bytes.offset_at(x, 0)
            if offset == 5:
                await screen.pilot.click(BytesPane, offset=(x + 1, 1))
                break
        await screen.settle()
        assert screen.path == "header.request_api_key"


async def test_every_byte_leads_to_the_leaf_that_claims_it(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        model = Model(capture)
        for exchange in capture.exchanges():
            model.choose(exchange.row.number - 1)
            assert model.look is not None
            for source in model.look.message.sources:
                for offset in range(0, len(source.data), max(1, len(source.data) // 50)):
                    node = model.look.node_at(source.number, offset)
                    assert node is not None
                    assert node.start <= offset < node.end
                    assert not [child for child in node.children if child.source == source.number]


async def test_decompressed_records_are_a_byte_source_of_their_own() -> None:
    async with opened(JAVA) as screen:
        model = screen.main.model
        number = next(n for n in range(len(model.capture)) if "gzip" in model.capture.row(n).info)
        screen.list.cursor = number
        await screen.settle()
        assert model.look is not None
        record = next(n for n in model.look.message.tree.walk() if n.source and n.name == "value")
        screen.fields.focus()
        await screen.settle()
        screen.fields.reveal(record)
        await screen.settle()
        assert screen.path == record.path
        assert model.source is model.look.message.sources[record.source]
        assert "decompressed" in str(screen.bytes.border_title)
        assert "teapot" in screen.lines()
        screen.bytes.focus()
        await screen.press("g")
        assert model.node is not None
        assert model.node.source == record.source


async def test_long_arrays_open_in_chunks(tmp_path: Path) -> None:
    names = b"".join(b"\x00\x05t%04d" % n for n in range(250))
    turns = [Turn(True, request(1, body=(250).to_bytes(4, "big") + names))]
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        assert screen.main.model.look is not None
        wanted = screen.main.model.look.message.tree.find("body.topics[237].name")
        assert wanted is not None
        screen.fields.focus()
        screen.fields.reveal(wanted)
        await screen.settle()
        assert screen.path == "body.topics[237].name"
        assert "t0237" in screen.lines()


async def test_help_shows_the_keys_and_goes_away() -> None:
    async with opened(JAVA) as screen:
        await screen.pilot.press("question_mark")
        await screen.pilot.pause()
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        await screen.pilot.press("escape")
        await screen.pilot.pause()
        assert isinstance(screen.pilot.app.screen, MainScreen)


async def test_backslash_gives_the_pane_the_screen_and_back() -> None:
    async with opened(JAVA) as screen:
        height = screen.list.size.height
        await screen.press("backslash")
        assert screen.list.size.height > height + 10
        await screen.press("backslash")
        assert screen.list.size.height == height
        await screen.press("plus")
        assert screen.list.size.height > height
        width = screen.bytes.size.width
        await screen.press("less_than_sign")
        assert screen.bytes.size.width > width


async def test_a_long_info_shows_that_it_was_cut() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await to(screen, "Produce")
        [line] = [line for line in screen.lines().splitlines() if line.startswith("▸") and "Produce" in line]
        assert line.rstrip(" ▁▂▃▄▅▆▇█").endswith("…")


@pytest.mark.parametrize(("width", "count"), [(60, 4), (80, 8), (200, 16)])
async def test_every_byte_of_a_line_is_drawn_at_every_width(width: int, count: int) -> None:
    async with opened(JAVA, size=(width, 30)) as screen:
        assert screen.bytes.per_line == count
        line = screen.bytes.render_line(0).text.rstrip()
        assert line.endswith("···1··········ad"[:count])  # the size, API key 18, version 4, id 0, "ad…"
        assert len(line) <= screen.bytes.scrollable_content_region.width
        assert screen.bytes.offset_at(len(line) - 1, 0) == count - 1


async def test_without_colours_the_choice_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(JAVA) as screen:
        await screen.press("enter", "g")
        assert any(segment.style and segment.style.reverse for segment in screen.bytes.render_line(0))
        rows = screen.list.render_line(1)
        assert any(segment.style and segment.style.reverse for segment in rows)


async def test_ctrl_s_saves_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(JAVA) as screen:
        await screen.press("ctrl+s")
        [picture] = tmp_path.rglob("*.svg")
        assert "ApiVersions" in picture.read_text()


async def test_a_capture_without_kafka_is_a_clear_screen(tmp_path: Path) -> None:
    path = tmp_path / "none.pcap"
    path.write_bytes(pcap([]))
    async with opened(str(path)) as screen:
        assert "No Kafka in this capture" in screen.lines()
        assert "tcpdump" in screen.lines()
        await screen.press("j", "enter", "r", "e", "right_square_bracket", "tab")


async def test_a_truncated_file_is_said_on_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(Path(JAVA).read_bytes()[:30_001])
    async with opened(str(path)) as screen:
        assert "the file ends after" in " ".join(screen.text("#notice").split())


async def test_words_from_the_wire_stay_words(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07[/nope]\x1b[2J\u202e\x9b31m [bold]".encode()
    topic = len(hostile).to_bytes(2, "big") + hostile
    turns = [Turn(True, request(1, client_id=hostile, body=(1).to_bytes(4, "big") + topic)), Turn(False, response(1))]
    async with opened(capture_of(tmp_path, conversation(turns)), size=(200, 60)) as screen:
        await screen.press("enter", "G")
        drawn = screen.lines()
        assert "[/nope]" in drawn
        assert not {c for c in drawn if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}


class Slow(Capture):
    """A capture of which the end comes when the test says so."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.may_end = threading.Event()

    def read(self, *, settled: bool = True) -> Iterator[Progress]:
        for progress in super().read(settled=settled):
            yield progress._replace(done=progress.total // 2)
            self.may_end.wait(20)


async def test_the_screen_works_while_the_capture_is_read() -> None:
    with Slow([JAVA]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            while not len(capture):
                await pilot.pause(0.01)
            await pilot.pause(0.3)
            assert "50%" in screen.lines()
            await pilot.press("j", "j", "enter", "down", "down")
            await pilot.pause()
            assert screen.row == 2
            assert screen.path
            capture.may_end.set()
            await screen.settle()
            assert "100%" in screen.lines()
            assert screen.row == 2


async def test_the_cursor_stays_with_its_row_when_rows_get_their_final_order() -> None:
    with Slow([str(PCAPS / "kafka-python-as-0.10-sasl.pcapng")]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            while not len(capture):
                await pilot.pause(0.01)
            await pilot.pause(0.3)
            await pilot.press(*["j"] * 9)
            await pilot.pause()
            assert screen.row == 9
            before = capture.row(9)
            capture.may_end.set()
            await screen.settle()
            assert screen.row != 9
            assert capture.row(screen.row)._replace(number=before.number) == before
            assert screen.main.model.number == screen.row


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
                while not len(capture) or "waiting" in screen.lines():
                    await pilot.pause(0.01)
                assert "%" not in screen.lines().splitlines()[0]
                file.write(data[len(data) // 2 :])
            await screen.settle()
            assert "100%" in screen.lines()


async def test_a_pipe_that_is_no_capture_ends_the_screen_with_a_word(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Capture([str(pipe)]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test() as pilot:
            await asyncio.to_thread(pipe.write_text, "just words")
            while app.error is None:
                await pilot.pause(0.01)
        assert "neither pcap nor pcapng" in str(app.error)
        assert app.return_code == 2


class Long(Capture):
    """A capture of five million rows, each one of the few that it really has."""

    looked = 0

    def __len__(self) -> int:
        return 5_000_000 if super().__len__() else 0

    def row(self, number: int) -> Row:
        self.looked += 1
        return super().row(number % super().__len__())

    def exchange(self, number: int) -> Exchange:
        return super().exchange(number % super().__len__())


class Drawing(MainScreen):
    """Looks at no row but to draw it."""

    def _grown(self, *, done: bool) -> None:
        pass


async def test_five_million_rows_cost_no_more_than_what_is_seen(tmp_path: Path) -> None:
    with Long([capture_of(tmp_path, conversation(exchanges(30)))]) as capture:
        async with KDissectApp(Drawing(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            await screen.press("G", "pageup", "pageup")
            assert 4_999_900 < screen.row < 5_000_000
            assert capture.looked < 400


async def test_a_log_segment_is_a_list_of_batches() -> None:
    async with opened(LEDGER) as screen:
        await screen.press("j", "enter", "down", "down")
        drawn = screen.lines()
        for words in ("offset 5 · 1 record", "Batch", "RECORD_BATCH"):
            assert words in drawn
        assert "batch.[0] · RECORD_BATCH" in screen.text("#inspector")
