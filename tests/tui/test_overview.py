"""The overview, driven by keys and clicks."""

import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest

from dissector.analysis.stats.counts import Statistics
from dissector.analysis.stats.statistics_pass import StatisticsPass, StatisticsProgress
from dissector.capture_session import Capture
from dissector.core.text import bar
from tests.analysis.stats.test_statistics_pass import counted
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response
from tests.tui.driver import SIZES
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.messages import ApplyFilter
from tui.overview_connections import connection_ends
from tui.overview_model import PAGES, OverviewSnapshot, overview_lines, overview_snapshot, tabs
from tui.screens.help_screen import HelpScreen
from tui.screens.main_screen import MainScreen
from tui.screens.overview_screen import OverviewScreen
from tui.widgets.line_list import LineList

TRANSACTIONS = str(PCAPS / "java-transactions.pcapng")


class Listening(MainScreen):
    """Records the filters that are applied."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.filters: list[str] = []

    def on_apply_filter(self, event: ApplyFilter) -> None:
        self.filters.append(event.text)


@asynccontextmanager
async def opened(*paths: str, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Screen, Listening]]:
    with Capture(paths) as capture:
        main = Listening(capture)
        app = KDissectApp(main)
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen, main


def lines(screen: Screen) -> LineList:
    return screen.pilot.app.screen.query_one(LineList)


@pytest.mark.long
async def test_o_shows_the_overview_at_every_size_and_after_each_resize() -> None:
    async with opened(TRANSACTIONS, size=SIZES[0]) as (screen, _):
        await screen.press("o")
        for size in (*SIZES, (70, 22)):
            await screen.resize(size)
            drawn = screen.lines()
            for words in ("Overview · 64 rows", "● counted", "64 exchanges", "APIs", "ApiVersions v4", "█"):
                assert words in drawn, size
            assert all(len(line) <= size[0] for line in drawn.splitlines())


@pytest.mark.exhaustive
async def test_tab_arrows_and_clicks_change_the_page() -> None:
    async with opened(TRANSACTIONS, size=(80, 24)) as (screen, _):
        await screen.press("o")
        seen = [screen.lines().splitlines()[2].split()[-1]]
        for _ in PAGES:
            await screen.press("tab")
            seen.append(screen.lines().splitlines()[2].strip())
        assert "Brokers" in seen[1]
        assert "Clients" in seen[3]
        assert "░ offered" in seen[7]
        assert "Latency" in seen[10]
        await screen.press("shift+tab", "shift+tab", "left")
        assert "Fields" in screen.lines().splitlines()[2]
        await screen.press("l", "right", "h")
        assert "Latency" in screen.lines().splitlines()[2]
        await screen.press("l", "l")
        [errors] = [tab for tab in tabs("summary", 78) if tab.page == "error"]
        await screen.pilot.click("#pages", offset=(1 + errors.cells.start, 0))
        await screen.settle()
        assert "MEMBER_ID_REQUIRED in Join" in screen.lines()


@pytest.mark.long
async def test_enter_and_a_double_click_apply_the_filter_of_the_line() -> None:
    async with opened(TRANSACTIONS) as (screen, main):
        await screen.press("o", "j", "j", "enter")
        assert main.filters == ["api == AddPartitionsToTxn && version == 5"]
        assert screen.pilot.app.screen is main
        await screen.press("o", "tab", "tab", "tab", "enter")
        assert main.filters[1:] == ['client_id == "producer-java-mill-1"']
        await screen.press("o")
        await screen.pilot.click(LineList, offset=(20, 8), times=2)
        await screen.settle()
        assert main.filters[2:] == ["api == AddPartitionsToTxn && version == 5"]


@pytest.mark.exhaustive
async def test_keys_move_along_the_lines() -> None:
    async with opened(TRANSACTIONS, size=(80, 24)) as (screen, _):
        await screen.press("o")
        first = lines(screen).cursor
        await screen.press("J", "j", "j", "k")
        assert str(lines(screen).target).startswith("api")
        await screen.press("K")
        assert lines(screen).cursor == first
        await screen.press("J", "J")
        assert str(lines(screen).target).startswith("client_id")
        await screen.press("right_curly_bracket")
        assert str(lines(screen).target).startswith("conn")
        await screen.press("K", "K", "left_curly_bracket")
        assert lines(screen).cursor == first
        await screen.press("G")
        assert "latency" in str(lines(screen).target)
        await screen.press("pageup", "ctrl+u")
        assert lines(screen).scroll_offset.y > 0
        before = lines(screen).cursor
        await screen.press("pagedown")
        assert lines(screen).cursor > before
        await screen.press("ctrl+d", "end", "g")
        assert (lines(screen).cursor, lines(screen).scroll_offset.y) == (first, 0)


@pytest.mark.exhaustive
async def test_it_closes_without_a_filter_and_keeps_a_complete_count() -> None:
    async with opened(TRANSACTIONS) as (screen, main):
        pictures = []
        for key in ("escape", "q", "o"):
            await screen.press("o")
            overview = screen.pilot.app.screen
            assert isinstance(overview, OverviewScreen)
            pictures.append(overview.picture)
            await screen.press(key)
            assert screen.pilot.app.screen is main
        assert not main.filters
        assert all(picture is pictures[0] for picture in pictures)


@pytest.mark.exhaustive
async def test_its_help_has_its_keys() -> None:
    async with opened(TRANSACTIONS) as (screen, _):
        await screen.press("o", "question_mark")
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        assert "Stop counting" in screen.lines()


@pytest.mark.exhaustive
async def test_counting_is_drawn_as_it_goes_on_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    steps = StatisticsPass.steps

    def slowly(counting: StatisticsPass) -> Iterator[StatisticsProgress]:
        for at, step in enumerate(steps(counting)):
            yield step
            if not at:
                goes_on.wait(20)

    monkeypatch.setattr(StatisticsPass, "steps", slowly)
    async with opened(TRANSACTIONS) as (screen, main):
        await screen.pilot.press("o")
        await screen.until(lambda: "○ 50 %" in screen.lines())
        assert "ApiVersions v4" in screen.lines(), "what the index has is there already"
        await screen.pilot.press("s")
        goes_on.set()
        await screen.settle()
        assert "stopped" in screen.lines()
        await screen.press("escape")
        assert screen.pilot.app.screen is main
        await screen.press("o")
        assert "● counted" in screen.lines(), "a stopped count starts again"


@pytest.mark.exhaustive
async def test_no_exchanges_no_overview(tmp_path: Any) -> None:
    web = conversation([Turn(True, b"GET / HTTP/1.1\r\n\r\n")], server=("10.0.0.2", 80))
    async with opened(capture_of(tmp_path, web)) as (screen, main):
        await screen.press("o", "D", "L")
        assert screen.pilot.app.screen is main


@pytest.mark.long
async def test_no_control_byte_from_the_wire_is_drawn(tmp_path: Any) -> None:
    hostile = "\x1b]0;owned\x07\x9b31m[/bold]\u202e".encode()
    topic = len(hostile).to_bytes(2, "big") + hostile
    answer = bytes(4) + (1).to_bytes(4, "big") + b"\x00\x03" + topic + bytes(4)
    ours = request(1, client_id=hostile, body=(1).to_bytes(4, "big") + topic)
    path = capture_of(tmp_path, conversation([Turn(True, ours), Turn(False, response(1, answer))]))
    async with opened(path) as (screen, _):
        for key in ("o", "D"):
            await screen.press(key)
            drawn = screen.lines()
            assert "owned" in drawn
            assert not {c for c in drawn if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}
            await screen.press("escape")


def drawn(path: str, page: str, **named: Any) -> list[tuple[str, object]]:
    """The words and the target of each line of a page."""
    with Capture([path], **named) as capture:
        for _ in capture.read():
            pass
        lines = overview_lines(overview_snapshot(Statistics(), connection_ends(capture)), page, 118)
    return [("".join(words for words, _ in line.pieces), line.target) for line in lines]


@cases(
    ("name", "words", "target"),
    [
        ("clients/java-4.3/broker-restarted-1.pcapng.zst",
         "‼ 55 connections of 127.0.0.1, each after an earlier one was closed, within 24 s", None),
        ("network/never-answered.pcap", "‼ no response to any client for 8 s after the request of row 3", 2),
        ("mistakes/librdkafka-refused-login.pcapng",
         "! C1 127.0.0.1:51578: only ApiVersions or a login, from 0.000000 s on, closed after 311.4 ms", "conn == 1"),
        ("two-brokers.pcapng", "! C13 127.0.0.1:55932: no message, from 5.053621 s on, closed after 55 µs", None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_connections_stands_below_their_broker(name: str, words: str, target: object) -> None:
    assert (words, target) in [(line.strip(), at) for line, at in drawn(str(PCAPS / name), "broker")]


def test_brokers_without_trouble_have_a_line_each() -> None:
    lines = drawn(TRANSACTIONS, "broker")
    assert len(lines) == 2
    assert lines[1][1] == 'server == "127.0.0.1:9092"'


@cases(
    ("name", "words"),
    [
        ("tls/java-1.2-mtls.pcapng", ("TLS 1.2 · without a host name (SNI)", "broker's certificate: CN=")),
        ("mistakes/java-untrusted.pcapng", ("‼ C1", "alert certificate_unknown, of the client")),
        ("mistakes/java-tls-to-plain.pcapng", ("C1", "no answer")),
    ],
)
def test_handshakes_without_keys_are_rows_to_open(name: str, words: tuple[str, ...], tmp_path: Any) -> None:
    path = tmp_path / "locked.pcapng"
    path.write_bytes(without_secrets((PCAPS / name).read_bytes()))
    lines = drawn(str(path), "tls", ports={9096, 9097})
    said = "\n".join(line for line, _ in lines)
    for each in words:
        assert each in said
    assert lines[1][1] == 0, "its row"


def test_decrypted_connections_are_not_listed() -> None:
    [_, line] = drawn(str(PCAPS / "tls/java-1.2-mtls.pcapng"), "tls")
    assert line == ("  none", None)


def without_secrets(data: bytes) -> bytes:
    """A little-endian pcapng without its blocks of decryption secrets."""
    kept, at = b"", 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        kept += data[at : at + size] if kind != 0x0A else b""
        at += size
    return kept


def test_versions_that_are_not_offered_come_first_and_stand_out() -> None:
    with Capture([str(PCAPS / "trouble-version-not-offered.pcapng")]) as capture:
        for _ in capture.read():
            pass
        lines = overview_lines(overview_snapshot(counted(capture)), "version", 118)
    assert lines[1].pieces[0] == ("     ‼ v0", "bad")
    assert lines[1].target == 'api == OffsetFetch && server == "127.0.0.1:9092" && client_id == "trouble"'
    assert [line.pieces[0][1] for line in lines[2:]] == [""] * len(lines[2:])
    assert len(lines) > 2


def test_bars_are_as_long_as_their_share() -> None:
    assert [bar(share, 4) for share in (0, 0.001, 0.5, 1)] == ["    ", "▏   ", "██  ", "████"]


def test_a_picture_of_nothing_has_no_parts() -> None:
    lines = overview_lines(overview_snapshot(Statistics()), "summary", 80)
    assert [line for line in lines if line.target is not None] == []


@pytest.mark.slow
@cases("page", PAGES)
@cases("width", [40, 58, 78, 118, 198])
def test_every_page_has_lines_for_every_width(page: str, width: int) -> None:
    assert page == "tls" or any(line.target for line in overview_lines(transactions(), page, width))
    shown = tabs(page, width)
    assert page in [tab.page for tab in shown]
    hidden_left, hidden_right = shown[0].page != next(iter(PAGES)), shown[-1].page != list(PAGES)[-1]
    assert shown[0].cells.start == hidden_left, "a cell for an ellipsis"
    assert shown[-1].cells.stop + hidden_right <= width


@cases("page", [each for each in PAGES if each not in ("summary", "version", "latency", "field")])
def test_a_page_without_lines_says_so(page: str) -> None:
    lines = overview_lines(overview_snapshot(Statistics()), page, 80)
    assert lines[-1].pieces == (("  none", "dim"),)
    assert len(lines) == 2


@pytest.mark.long
async def test_names_of_pages_that_do_not_fit_leave_an_ellipsis() -> None:
    async with opened(TRANSACTIONS, size=(80, 24)) as (screen, _):
        await screen.press("o")
        assert screen.lines().splitlines()[1].rstrip().endswith("Errors …")
        await screen.press("left")
        assert screen.lines().splitlines()[1].startswith(" … Clients")
        assert screen.lines().splitlines()[1].rstrip().endswith("TLS")


@cache
def transactions() -> OverviewSnapshot:
    with Capture([TRANSACTIONS]) as capture:
        for _ in capture.read():
            pass
        return overview_snapshot(counted(capture), connection_ends(capture))
