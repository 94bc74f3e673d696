"""The filter bar and the list: keys, clicks, progress, stopping, continuing."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from textual import events
from textual.widgets import OptionList

from dissector.capture_session import Capture
from dissector.filter import Filter
from dissector.filter.selection import SelectedRows
from tests.conftest import PCAPS
from tests.tui import textual_for_tests
from tests.tui.main_driver import JAVA, Halting, Screen, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.app import KDissectApp
from tui.messages import ApplyFilter
from tui.recents import FILTERS, recent
from tui.screens.dialog import Menu
from tui.screens.main_screen import MainScreen
from tui.widgets.filter_bar import FilterBar


def shown(screen: Screen) -> list[int]:
    view = screen.main.view
    return [view.number(position) for position in range(len(view))]


def fitting(screen: Screen, api: str) -> list[int]:
    capture = screen.main.capture
    return [n for n in range(len(capture)) if capture.exchange(n).row.api == api]


async def typed(screen: Screen, text: str) -> None:
    for character in text:
        await screen.pilot.press("space" if character == " " else character)
    await screen.settle()


async def pasted(screen: Screen, text: str) -> None:
    """Type a text at once."""
    screen.pilot.app.post_message(events.Paste(text))
    await screen.settle()


@pytest.mark.long
async def test_slash_opens_the_bar_and_enter_shows_the_rows_that_match(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("slash")
        await typed(screen, "api == Fetch")
        await screen.press("enter")
        wanted = fitting(screen, "Fetch")
        assert shown(screen) == wanted
        count = len(screen.main.capture)
        assert f"{len(wanted)} shown" in screen.text("#title")
        assert f"✔ {len(wanted)} of {count}" in screen.text("#filter-state")
        assert screen.main.focused is screen.list
        assert screen.list.number in wanted
        assert recent(FILTERS) == ["api == Fetch"]
        await screen.pilot.click("#filter-text")
        await screen.settle()
        assert screen.main.query_one(FilterBar).is_open
        await screen.press("end", "ctrl+u", "enter")
        assert len(shown(screen)) == count, "an empty filter is none"
        screen.main.post_message(ApplyFilter("api == Fetch", prepare=True))
        await screen.settle()
        bar = screen.main.query_one(FilterBar)
        assert (bar.is_open, bar.text) == (True, "api == Fetch"), "a prepared filter waits for enter"
        assert len(shown(screen)) == count


@pytest.mark.long
async def test_escape_shows_all_rows_again_and_keeps_the_place(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("4", "G")
        place = screen.list.number
        assert place not in fitting(screen, "Fetch")
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        assert screen.list.number != place
        await screen.press("escape")
        assert len(shown(screen)) == len(screen.main.capture)
        assert screen.list.number == place
        assert not screen.main.query_one(FilterBar).display
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("j")
        place = screen.list.number
        await screen.press("escape")
        assert screen.list.number == place


@pytest.mark.exhaustive
async def test_a_removed_filter_comes_back_with_the_key_that_is_named(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("u")
        assert screen.notifications() == ["no filter was removed; / adds one"]
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        shown = len(screen.main.view)
        await screen.press("escape")
        assert not screen.main.view.is_filtered
        assert screen.notifications()[-1] == "filter removed; u brings it back"
        screen.main.filter.apply("latency > 1h")
        await screen.settle()
        assert (
            f"0 of {len(screen.main.capture)} exchanges match · / edits the filter · esc removes it" in screen.lines()
        )
        assert screen.main.model.exchange is None
        assert "request_api_key" not in screen.lines(), "no message is shown without its row"
        await screen.press("escape")
        assert screen.main.model.number == screen.row
        assert "request_api_key" in screen.lines()
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("escape")
        await screen.press("u")
        assert len(screen.main.view) == shown
        assert "api == Fetch" in screen.lines()
        await screen.press("u")
        assert not screen.main.view.is_filtered


@pytest.mark.exhaustive
async def test_a_filter_from_a_field_keeps_the_field_and_the_pane(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "Produce")
        await screen.press("enter", "j", "j", "j", "j", "j", "j", "j", "j")
        path, line = screen.path, screen.fields.cursor_line
        assert path.startswith("body.")
        number = screen.main.number
        await screen.press("a")
        assert screen.main.view.is_filtered
        assert (screen.main.number, screen.path, screen.fields.cursor_line) == (number, path, line)
        assert screen.main.focused is screen.fields


@pytest.mark.long
async def test_an_invalid_filter_stays_in_the_bar_with_a_caret_below_the_error(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.main.post_message(ApplyFilter("latency > 5ms && apii == Fetch"))
        await screen.settle()
        bar = screen.main.query_one(FilterBar)
        assert bar.is_open
        lines = screen.lines().splitlines()
        at = next(n for n, line in enumerate(lines) if "apii == Fetch" in line)
        assert lines[at].index("apii") == lines[at + 1].index("▲")
        assert "api" in lines[at + 1]
        assert len(shown(screen)) == len(screen.main.capture)
        await screen.press("escape")
        assert not bar.display
        assert screen.main.focused is screen.list


@pytest.mark.long
async def test_errors_are_shown_after_a_pause_and_not_while_typing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is one that no machine is too slow for, and then none."""
    monkeypatch.setattr("tui.widgets.filter_bar.PAUSE", 1_000)
    async with opened(JAVA) as screen:
        await screen.press("slash")
        await typed(screen, "apii")
        assert "▲" not in screen.text("#filter-error")
        monkeypatch.setattr("tui.widgets.filter_bar.PAUSE", 0.01)
        await typed(screen, "i")
        await screen.until(lambda: "▲" in screen.text("#filter-error"))
        monkeypatch.setattr("tui.widgets.filter_bar.PAUSE", 1_000)
        await typed(screen, "x")
        assert "▲" not in screen.text("#filter-error")


@pytest.mark.exhaustive
async def test_the_beginning_of_a_suggestion_is_not_an_error_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.widgets.filter_bar.PAUSE", 1_000)
    async with opened(JAVA) as screen:
        await screen.press("slash")
        await pasted(screen, "api == Fe")
        screen.main.query_one(FilterBar)._check("api == Fe")  # as after the pause
        assert "Fetch" in offered(screen)
        assert "▲" not in screen.text("#filter-error")
        await pasted(screen, "xyz")
        screen.main.query_one(FilterBar)._check("api == Fexyz")
        await screen.until(lambda: "▲" in screen.text("#filter-error"))


@pytest.mark.exhaustive
async def test_ctrl_r_offers_recent_filters(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("ctrl+r")
        assert not isinstance(screen.pilot.app.screen, Menu)
        for text in ("api == Fetch", "api == Produce"):
            screen.main.filter.apply(text)
            await screen.settle()
        await screen.pilot.press("ctrl+r", "down", "enter")
        await screen.settle()
        assert shown(screen) == fitting(screen, "Fetch")


@pytest.mark.exhaustive
async def test_f_follows_the_connection_and_comes_back(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.main.filter.apply("api == Metadata || api == Fetch")
        await screen.settle()
        before = shown(screen)
        capture = screen.main.capture
        connection = capture.rows.connection_of(screen.list.number)
        await screen.press("f")
        assert shown(screen) == [n for n in range(len(capture)) if capture.rows.connection_of(n) == connection]
        await screen.press("f")
        assert shown(screen) == before


@pytest.mark.long
async def test_an_empty_result_is_shown_and_no_key_fails() -> None:
    with textual_for_tests.drawn_after_each_change():
        async with opened(JAVA) as screen:
            screen.main.filter.apply("api == Vote")
            await screen.settle()
            assert "✔ 0 of" in screen.text("#filter-state")
            await screen.press(
                "j", "k", "G", "g", "r", "e", "f7", "T", "t", "z", "escape", "right_square_bracket", "f", "M"
            )
            await screen.press("escape")
            assert len(shown(screen)) == len(screen.main.capture)


class Stepping(Capture):
    """A capture in which a filter goes a row a step, each when the test says so."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.steps = threading.Semaphore(0)

    def select(self, filter: Filter, start: int = 0, stop: int | None = None) -> Iterator[SelectedRows]:
        for number in range(start, len(self) if stop is None else stop):
            if not self.steps.acquire(timeout=20):
                raise AssertionError("nobody let it go on")
            yield SelectedRows(number + 1, next(super().select(filter, number, number + 1)).rows)


@asynccontextmanager
async def stepping() -> AsyncIterator[tuple[Screen, Stepping]]:
    with Stepping([JAVA]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen, capture
            capture.steps.release(10_000)


async def test_rows_come_as_they_are_found_and_escape_stops_at_once() -> None:
    async with stepping() as (screen, capture):
        screen.main.filter.apply("api == ApiVersions")
        assert "○ 0 %" in screen.text("#filter-state")
        capture.steps.release(5)
        await screen.until(lambda: len(screen.main.view) or capture.steps.release(1))
        assert "○" in screen.text("#filter-state")
        await screen.pilot.press("j", "j")
        await screen.pilot.press("escape")
        await screen.pilot.pause()
        assert "■ stopped at" in screen.text("#filter-state")
        found = shown(screen)
        assert found
        capture.steps.release(10_000)
        await screen.settle()
        assert shown(screen) == found
        await screen.press("escape")
        assert len(shown(screen)) == len(capture)


@pytest.mark.exhaustive
async def test_the_rows_of_a_filter_that_comes_back_are_not_looked_for_again() -> None:
    async with stepping() as (screen, capture):
        capture.steps.release(len(capture))
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("escape")
        assert len(shown(screen)) == len(capture)
        await screen.pilot.press("u")
        assert shown(screen) == fitting(screen, "Fetch")
        assert "✔" in screen.text("#filter-state")


@pytest.mark.long
async def test_a_filter_applies_to_rows_that_come_and_still_does_in_their_final_order() -> None:
    with Halting([str(PCAPS / "kafka-python-as-0.10-sasl.pcapng")]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.until(lambda: "50%" in screen.lines())
            screen.main.filter.apply("api == Fetch")
            await screen.until(lambda: len(screen.main.view))
            before = capture.exchange(screen.list.number).row
            capture.may_end.set()
            await screen.settle()
            await screen.settle()
            assert shown(screen) == fitting(screen, "Fetch")
            assert capture.exchange(screen.list.number).row._replace(number=before.number) == before


@pytest.mark.exhaustive
async def test_a_filter_and_an_order_go_together(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("Z")
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        assert shown(screen) == fitting(screen, "Fetch")[::-1]
        await screen.press("escape", "Z")
        assert shown(screen) == list(range(len(screen.main.capture)))


@pytest.mark.exhaustive
async def test_rows_completed_since_are_matched_again() -> None:
    """As in a live capture: half a capture has pending requests."""
    with Capture([JAVA]) as capture:
        async with KDissectApp(MainScreen(capture)).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            screen.main.filter.apply("latency > 0ms && api == Fetch")
            await screen.settle()
            run = screen.main.filter._run
            assert run is not None
            wanted = shown(screen)
            screen.main.view.keep(np.array(wanted[1:]))  # as if the first had had no response then
            run.pending = np.array(wanted[:1])
            screen.main._rows_added(done=False)
            await screen.settle()
            assert shown(screen) == wanted
            assert not len(run.pending)


def offered(screen: Screen) -> list[str]:
    options = screen.main.query_one("#filter-offers", OptionList)
    if not options.display:
        return []
    return [str(options.get_option_at_index(n).prompt).split()[0] for n in range(options.option_count)]


@pytest.mark.long
async def test_words_that_may_follow_are_offered_and_tab_or_a_click_takes_one(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        bar = screen.main.query_one(FilterBar)
        await screen.press("slash")
        assert "api" in offered(screen)
        await pasted(screen, "latency > 0ms && api == Offse")
        assert offered(screen)[:1] == ["OffsetCommit"]
        await screen.press("tab")
        assert bar.text == "latency > 0ms && api == OffsetCommit"
        assert "OffsetCommit" not in offered(screen)
        await screen.press("enter")
        assert shown(screen) == fitting(screen, "OffsetCommit")
        await screen.press("slash", "ctrl+u")
        await pasted(screen, "api == Heart")
        assert offered(screen)[0] == "Heartbeat"
        await screen.pilot.click("#filter-offers", offset=(3, 0))
        await screen.settle()
        assert (bar.text, bar.is_open) == ("api == Heartbeat", True)


@pytest.mark.exhaustive
async def test_arrows_select_a_suggestion_enter_takes_it_and_escape_closes_them_then_the_bar(
    shared: SharedScreens,
) -> None:
    async with shared.opened(JAVA) as screen:
        bar = screen.main.query_one(FilterBar)
        await screen.press("slash")
        await pasted(screen, "api == Offset")
        words = offered(screen)
        await screen.press("down", "down", "up", "enter")
        assert bar.is_open
        assert bar.text == f"api == {words[1]}"
        await screen.press("ctrl+u")
        await pasted(screen, "api == Offset")
        assert offered(screen)
        await screen.press("escape")
        assert (offered(screen), bar.is_open) == ([], True)
        await screen.press("escape")
        assert (bar.display, screen.main.focused) == (False, screen.list)


@pytest.mark.exhaustive
async def test_a_filter_on_findings_matches_cross_message_findings() -> None:
    path = str(PCAPS / "trouble-metadata-storm.pcapng")
    with Capture([path]) as capture:
        list(capture.exchanges())
        list(capture.findings.examine())
        findings = capture.findings.cross_message()
    assert findings
    code = findings[0][1].code
    async with opened(path) as screen:
        screen.main.filter.apply(f'finding == "{code}"')
        await screen.settle()
        assert set(shown(screen)) >= {row for row, finding in findings if finding.code == code}
