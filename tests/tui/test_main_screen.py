"""The main screen: it opens, moves, and shows its messages."""

import re
import threading
from pathlib import Path

import pytest
from textual.app import ComposeResult

from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.storage.test_files import LEDGER
from tests.test_mistakes import NOT_SHOWN, with_other_protocols
from tests.traffic import Turn, capture_of, conversation, pcap, request, response
from tests.tui.driver import SIZES
from tests.tui.main_driver import JAVA, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.features.row_search import RowSearchFeature
from tui.screens.command_dialog import CommandDialog
from tui.widgets.key_footer import KeyFooter


@pytest.mark.long
@pytest.mark.slow
async def test_keys_move_through_the_list_which_follows_its_cursor() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        last = len(screen.main.model.capture) - 1
        moves = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", last), ("g", 0), ("end", last), ("home", 0)]
        for keys, row in [*moves, ("4 2 G", 41), ("f7", 40), ("f8", 41)]:
            await screen.press(*keys.split())
            assert screen.row == row, keys
        await screen.press("pageup")
        assert screen.row < 41
        await screen.press("g", "k")
        assert screen.row == 0
        await screen.press("G")
        assert "DeleteTopics" in screen.lines()
        await to(screen, "Produce")
        [line] = [line for line in screen.lines().splitlines() if line.startswith("▸") and "Produce" in line]
        assert line.rstrip(" ▁▂▃▄▅▆▇█").endswith("…"), "a cut info shows that it is cut"


@pytest.mark.exhaustive
@pytest.mark.slow
async def test_a_long_name_gives_way_to_what_the_title_says(tmp_path: Path) -> None:
    copy = tmp_path / f"{'long-' * 30}.pcapng"
    copy.symlink_to(JAVA)
    async with opened(str(copy), size=(80, 24)) as screen:
        line = screen.lines().splitlines()[0]
        assert line.startswith(" long-")
        assert "… · 60 exchanges · 15 connections" in line
        assert line.rstrip().endswith("● 100%")


@pytest.mark.long
@pytest.mark.slow
async def test_enter_goes_to_the_fields_tab_round_the_panes_and_backslash_maximizes_one() -> None:
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
        await screen.press("tab")
        height = screen.list.size.height
        await screen.press("backslash")
        assert screen.list.size.height > height + 10
        await screen.press("backslash")
        assert screen.list.size.height == height
        await screen.press("plus")
        assert screen.list.size.height > height
        width = screen.bytes.size.width
        await screen.press("greater_than_sign")
        assert screen.bytes.size.width < width
        await screen.press("less_than_sign")
        assert screen.bytes.size.width == width


@pytest.mark.exhaustive
async def test_r_shows_the_other_message_and_brackets_stay_on_the_connection(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("r")
        assert screen.main.model.side == "response"
        assert "error_code" in screen.lines()
        await screen.press("r")
        assert screen.main.model.side == "request"
        await to(screen, "CreateTopics")
        capture = screen.main.model.capture
        before, connection = screen.row, capture.rows.connection_of(screen.row)
        await screen.press("right_square_bracket")
        assert screen.row > before
        assert capture.rows.connection_of(screen.row) == connection
        await screen.press("left_square_bracket")
        assert screen.row == before


@pytest.mark.long
async def test_e_goes_to_the_next_row_with_a_warning_or_an_error() -> None:
    async with opened(str(PCAPS / "librdkafka.pcapng")) as screen:
        await screen.press("e")
        assert screen.main.model.exchange is not None
        assert "COORDINATOR_NOT_AVAILABLE" in screen.main.model.exchange.row.info
        assert "back off" not in screen.main.model.exchange.row.info
        first = screen.row
        await screen.press("e")
        assert screen.row > first
        await screen.press("E")
        assert screen.row == first


@pytest.mark.long
@pytest.mark.slow
async def test_without_colors_the_cursor_is_still_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(JAVA) as screen:
        await screen.press("enter", "g")
        assert any(segment.style and segment.style.reverse for segment in screen.bytes.render_line(0))
        rows = screen.list.render_line(1)
        assert any(segment.style and segment.style.reverse for segment in rows)


@pytest.mark.exhaustive
@pytest.mark.slow
async def test_ctrl_s_saves_a_screenshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(JAVA) as screen:
        await screen.press("ctrl+s")
        [picture] = tmp_path.rglob("*.svg")
        words = re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text())
        assert "ApiVersions" in words
        assert not [word for word in words[1:] if "&#160;" in word or " " in word], "each word has its place"
        await screen.press("d", "ctrl+s")
        assert len(list(tmp_path.rglob("*.svg"))) == 2, "over a dialog too"


@pytest.mark.slow
async def test_a_capture_without_kafka_shows_what_it_has_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "none.pcap"
    path.write_bytes(pcap([]))
    async with opened(str(path)) as screen:
        assert "No Kafka in this capture" in screen.lines()
        assert "tcpdump" in screen.lines()
        assert "kdissect proxy BROKER:9092" in screen.lines()
        footer = screen.lines().splitlines()[-1]
        assert all(word in footer for word in ("Help", "Quit"))
        assert not any(word in footer for word in ("Filter", "Next error", "Records", "Findings"))
        await screen.press("j", "enter", "r", "e", "right_square_bracket", "tab")
        await screen.press("colon")
        assert isinstance(screen.pilot.app.screen, CommandDialog), "commands need no rows"


@pytest.mark.long
@pytest.mark.slow
async def test_a_capture_of_tls_alone_says_that_it_needs_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "encrypted.pcapng")
    tls = str(PCAPS / "tls" / "rskafka-1.3-scram.pcapng")
    assert kdissect("export", tls, "-w", path, "--no-secrets").returncode == 0
    async with opened(path) as screen:
        assert "Kafka over TLS needs its keys: --keylog FILE" in screen.lines()


@pytest.mark.long
@pytest.mark.slow
async def test_a_truncated_file_is_reported_on_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(Path(JAVA).read_bytes()[:30_001])
    async with opened(str(path)) as screen:
        assert "the file ends after" in " ".join(screen.text("#notice").split())


@pytest.mark.long
async def test_no_control_character_from_the_wire_is_drawn(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07[/nope]\x1b[2J\u202e\x9b31m [bold]".encode()
    topic = len(hostile).to_bytes(2, "big") + hostile
    turns = [Turn(True, request(1, client_id=hostile, body=(1).to_bytes(4, "big") + topic)), Turn(False, response(1))]
    async with opened(capture_of(tmp_path, conversation(turns)), size=(200, 60)) as screen:
        await screen.press("enter", "G")
        drawn = screen.lines()
        assert "[/nope]" in drawn
        assert not {c for c in drawn if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}


@pytest.mark.long
@pytest.mark.slow
async def test_a_log_segment_is_a_list_of_batches() -> None:
    async with opened(LEDGER) as screen:
        await screen.press("j", "enter", "down", "down")
        drawn = screen.lines()
        for words in ("offset 5 · 1 record", "Batch", "RECORD_BATCH"):
            assert words in drawn
        assert "batch · RECORD_BATCH" in screen.text("#inspector")


@pytest.mark.long
async def test_escape_stops_or_undoes_one_thing_at_a_time_in_a_fixed_order(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        assert [step.__qualname__ for step in screen.main.escape_order()] == [
            "RowSearchFeature.stop", "LongMessagesFeature.cancel_jump", "FilterFeature.stop", "FilterFeature.clear",
        ]  # fmt: skip
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        may_end = threading.Event()
        screen.main.feature(RowSearchFeature).search(1, lambda rows: may_end.wait(60) or None, "exchange")
        await screen.pilot.press("escape")
        may_end.set()
        await screen.settle()
        assert screen.main.view.is_filtered
        await screen.press("escape")
        assert not screen.main.view.is_filtered


@pytest.mark.long
async def test_each_step_of_escape_does_nothing_without_a_reason(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        assert [step() for step in screen.main.escape_order()] == [False] * 4


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("size", [SIZES[0], SIZES[2]])
async def test_connections_that_are_not_kafka_are_counted_above_the_list(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(with_other_protocols(tmp_path), size=size) as screen:
        assert len(screen.main.model.capture) == 2
        drawn = " ".join(line.strip() for line in screen.lines().splitlines())
        assert f"! {NOT_SHOWN}" in " ".join(drawn.split())
    async with opened(JAVA, size=size) as screen:
        assert "not Kafka" not in screen.lines()


@pytest.mark.long
async def test_the_first_footer_is_that_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[str]] = []
    compose = KeyFooter.compose

    def kept(footer: KeyFooter) -> ComposeResult:
        keys = list(compose(footer))
        drawn.append([str(getattr(key, "description", "")) for key in keys])
        return iter(keys)

    monkeypatch.setattr(KeyFooter, "compose", kept)
    async with opened(JAVA) as screen:
        assert screen.main.focused is screen.list
        shown = [each for each in drawn if each]
        assert "Filter" in shown[0]
        assert shown == [shown[0]] * len(shown), "no other footer flashes before"


@pytest.mark.long
async def test_a_number_before_a_key_counts_lines() -> None:
    async with opened(JAVA) as screen:
        await screen.press("1", "2", "j", "j")
        assert screen.row == 13
        await screen.press("3", "k", "5", "t", "j")
        assert screen.row == 11, "the number was for the key behind it"
        await screen.press("7", "g", "enter", "5", "j")
        assert screen.path == "header.client_id"
        await screen.press("9", "9", "k")
        assert screen.fields.cursor_line == 0
        await screen.press("3", "G")
        assert screen.path == "header.request_api_key"
        await screen.press("9", "9", "9", "9", "j")
        assert screen.fields.cursor_line == screen.fields.last_line


@pytest.mark.long
@pytest.mark.slow
async def test_what_is_said_of_a_row_has_two_lines_where_there_is_room() -> None:
    async with opened(JAVA) as screen:
        assert screen.text("#inspector").endswith("2.2 ms ·\napache-kafka-java")
        await screen.resize((120, 30))
        assert "\n" not in screen.text("#inspector")
        await screen.resize((200, 60))
        assert screen.text("#inspector").endswith("2.2 ms · apache-kafka-java")


@pytest.mark.long
@pytest.mark.slow
async def test_where_a_title_has_no_room_it_says_less_of_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(JAVA, size=(60, 20)) as screen:
        monkeypatch.setattr(screen.main.findings, "status_words", lambda: " · analyzing 50 %")
        screen.main.draw_title()
        assert screen.text("#title").endswith("15 connections         ● 100%"), "the largest part of what does not fit"
        await screen.resize((80, 24))
        assert screen.text("#title").endswith("15 connections            ● 100% · analyzing 50 %")
