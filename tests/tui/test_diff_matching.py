"""Actions on the diff screen: match, swap, copy, export, open."""

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from dissector.analysis.diff import PairVerdict
from dissector.capture_session import Capture
from tests.analysis.diff.cutting import cut
from tests.conftest import PCAPS
from tests.tui.diff_driver import JAVA, LIBRDKAFKA, Screen, opened, to_cause, to_pair
from tui.app import KDissectApp
from tui.features.diff_ignored import IgnoredDialog
from tui.screens.compare_dialog import CompareDialog
from tui.screens.dialog import Menu
from tui.screens.main_screen import DetailScreen, MainScreen


@pytest.mark.exhaustive
async def test_after_a_swap_the_same_exchange_is_selected() -> None:
    async with opened(JAVA, str(PCAPS / "trouble-throttled.pcapng")) as screen:
        await screen.press("v", "G")
        before = screen.rows
        assert max(row for row in before if row is not None) > 10
        await screen.press("s")
        assert screen.rows == before[::-1]


@pytest.mark.exhaustive
async def test_s_swaps_the_sides_and_i_lists_what_is_ignored() -> None:
    async with opened() as screen:
        before = screen.model.comparison
        await screen.press("s")
        after = screen.model.comparison
        assert (after.a.label, after.b.label) == (before.b.label, before.a.label)
        assert len(after.entries) == len(before.entries)
        assert screen.lines().startswith(" A compare-librdkafka-1")
        await screen.press("s", "i")
        assert isinstance(screen.pilot.app.screen, IgnoredDialog)
        drawn = screen.lines()
        assert "correlation ids" in drawn
        assert "topic java-orders-1 of A is" in drawn
        await screen.press("escape")
        assert screen.diff.is_current


@pytest.mark.long
async def test_what_was_not_captured_is_in_the_title_and_in_the_list(tmp_path: Path) -> None:
    late = cut(Path(JAVA), 5, 10, tmp_path)
    async with opened(JAVA, late) as screen:
        assert "partly captured (i)" in screen.lines()
        await screen.press("i")
        drawn = screen.lines()
        assert "Not compared" in drawn
        assert "B begins in the middle of" in drawn
    async with opened(JAVA, late, (70, 30)) as screen:
        assert "partly (i)" in screen.lines()
    async with opened() as screen:
        assert "partly" not in screen.lines()


@pytest.mark.long
async def test_space_matches_two_rows_by_hand_and_undoes_it() -> None:
    async with opened() as screen:
        await to_pair(screen, "Metadata", PairVerdict.DIFFERENT)
        a = screen.rows[0]
        assert a is not None
        await screen.press("space")
        assert "◆" in screen.lines()
        await to_pair(screen, "Metadata", PairVerdict.ONLY_B)
        b = screen.rows[1]
        await screen.press("space")
        assert screen.diff.matched == ((a, b),)
        place = screen.model.place_of(0, a)
        assert place is not None
        pair = screen.model.comparison.pairs[place]
        assert (pair.a, pair.b, pair.verdict) == (a, b, PairVerdict.DIFFERENT)
        assert "by hand" in screen.lines()
        assert any(each.path == "topics" for each in screen.model.comparison.differences(pair))
        screen.diff.pairs.cursor = screen.model.shown.index(place)
        await screen.press("space")
        assert screen.diff.matched == ()
        assert "by hand" not in screen.lines()


@pytest.mark.exhaustive
async def test_exchanges_of_two_apis_are_not_matched_and_escape_removes_the_mark() -> None:
    async with opened() as screen:
        await to_pair(screen, "InitProducerId", PairVerdict.ONLY_A)
        await screen.press("space")
        await to_pair(screen, "Metadata", PairVerdict.ONLY_B)
        await screen.press("space")
        assert "exchanges of different APIs can't be matched" in screen.notifications()
        assert screen.diff.matched == ()
        await screen.press("escape")
        assert screen.diff.pairs.marked is None
        assert screen.diff.is_current


@pytest.mark.exhaustive
async def test_y_copies_the_line_of_the_cursor() -> None:
    async with opened() as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        await screen.press("y")
        copied = screen.pilot.app.clipboard
        assert copied.startswith("Fetch request.isolation_level: 0 READ_UNCOMMITTED vs 1 READ_COMMITTED")
        await to_pair(screen, "ApiVersions", PairVerdict.DIFFERENT)
        await screen.press("y")
        assert screen.pilot.app.clipboard == "A 1 ApiVersions v4 ⇄ B 1 ApiVersions v3: version, 3 fields"
        screen.diff.differences.focus()
        await screen.press("down", "y")
        copied = screen.pilot.app.clipboard
        assert copied == 'request.client_software_name: "apache-kafka-java" vs "confluent-kafka-python" (value)'


@pytest.mark.long
async def test_x_writes_the_report_in_each_format_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as screen:
        count = len(screen.model.comparison.entries)
        formats = [("txt", str(count)), ("md", "# "), ("html", "<!DOCTYPE"), ("json", '{"kind":"comparison"')]
        for number, (ending, first_words) in enumerate(formats):
            for outcome in ("wrote", "not written"):
                await screen.press("x")
                assert isinstance(screen.pilot.app.screen, Menu)
                await screen.press(*["down"] * number, "enter")
                assert screen.notifications()[-1].startswith(outcome)
            written = tmp_path / f"diff-compare-java-1-compare-librdkafka-1.{ending}"
            text = written.read_text().lstrip()
            assert written.stat().st_mode == 0o100600
            assert text.startswith(first_words)
            assert "isolation" in text
        assert len(list(tmp_path.iterdir())) == len(formats)


@pytest.mark.long
async def test_o_opens_the_exchange_of_a_and_capital_o_that_of_b_and_q_comes_back() -> None:
    async with opened() as screen:
        await to_pair(screen, "Fetch", PairVerdict.DIFFERENT)
        for key, row in zip(("o", "O"), screen.rows, strict=True):
            await screen.press(key)
            main = screen.pilot.app.screen
            assert isinstance(main, DetailScreen)
            assert main.number == row
            assert main.model.side == "request"
            await screen.press("q")
            assert screen.diff.is_current
        await to_pair(screen, "Metadata", PairVerdict.ONLY_B)
        await screen.press("o")
        assert screen.diff.is_current
        assert "A has no exchange here" in screen.notifications()


@pytest.mark.exhaustive
async def test_d_on_the_main_screen_asks_for_a_capture_and_compares(tmp_path: Path) -> None:
    for name in (JAVA, LIBRDKAFKA):
        (tmp_path / Path(name).name).symlink_to(name)
    here = str(tmp_path / Path(JAVA).name)
    with Capture([here]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            await screen.press("d")
            assert isinstance(app.screen, CompareDialog)
            await screen.press("escape")
            assert isinstance(app.screen, MainScreen)
            await screen.press("d", "down")
            assert isinstance(app.screen.focused, OptionList)
            await screen.press("enter")
            assert screen.diff.comparison is not None
            assert screen.diff.comparison.b.label == "compare-librdkafka-1"
            await screen.press("escape")
            assert isinstance(app.screen, MainScreen)
            await screen.press("d")
            app.screen.query_one(Input).value = str(tmp_path / "missing.pcap")
            await screen.press("enter")
            assert isinstance(app.screen, MainScreen)
            assert any("missing.pcap" in words for words in screen.notifications())
            await screen.press("d")
            app.screen.query_one(Input).value = LIBRDKAFKA
            await screen.press("enter")
            assert screen.diff.comparison is not None
