"""Sorting: the order against Python's, and its keys and clicks."""

from collections.abc import Iterator

import pytest
from textual.widgets import OptionList

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from tests.cases import cases
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen
from tests.tui.shared_screens import SharedScreens
from tui.appearance import reversed_order, sorted_rows
from tui.list_columns import MARKS_WIDTH, all_columns
from tui.screens.dialog import Menu
from tui.widgets.exchange_list import ExchangeList

Both = tuple[Capture, list[Exchange]]
"""Two captures as one, and their exchanges."""


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng"), JAVA]) as capture:
        yield capture, list(capture.exchanges())


@pytest.mark.long
@cases("name", [column.field for column in all_columns() if column.is_indexed])
def test_rows_are_in_the_order_of_their_values_and_those_without_one_are_last(both: Both, name: str) -> None:
    capture, exchanges = both
    values = [ROW_FIELDS[name].from_exchange(exchange) for exchange in exchanges]
    there = [n for n, value in enumerate(values) if value is not None]
    absent = [n for n, value in enumerate(values) if value is None]
    found = sorted_rows(capture, name, len(values), lambda: False)
    assert found is not None
    order, present = found
    assert order.tolist() == [*sorted(there, key=lambda n: values[n]), *absent]
    backwards = reversed_order(order, present)[:present]
    assert [values[n] for n in backwards] == [values[n] for n in order[:present][::-1]]
    assert reversed_order(order, present)[present:].tolist() == absent


def test_sorting_stops_on_request() -> None:
    with Capture([JAVA]) as capture:
        count = len(list(capture.exchanges()))
        assert sorted_rows(capture, "number", count, lambda: True) is None


def cells_of(screen: Screen, name: str) -> list[str]:
    """Return what the list shows of a column."""
    start = MARKS_WIDTH
    for column in screen.list.columns():
        if column.name == name:
            lines = [screen.list.render_line(y).text for y in range(1, screen.list.size.height)]
            return [line[start : start + column.width].strip() for line in lines if line.strip()]
        start += column.width + 1
    raise AssertionError(name)


async def _click_head(screen: Screen, name: str) -> None:
    start = MARKS_WIDTH
    for column in screen.list.columns():
        if column.name == name:
            await screen.pilot.click(ExchangeList, offset=(start + 1, 0))
        start += column.width + 1
    await screen.settle()


@pytest.mark.exhaustive
async def test_a_letter_goes_to_the_next_column_that_begins_with_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("z")
        menu = screen.pilot.app.screen.query_one(OptionList)
        names = []
        for key in ("l", "c", "c", "K", "j", "k"):  # j and k move
            await screen.pilot.press(key)
            names.append(str(menu.get_option_at_index(menu.highlighted).prompt).split()[0])
        assert names[:4] == ["Latency", "Conn", "Corr", "Kind"]
        assert names[4] != names[5] == "Kind"
        await screen.press("home", "l", "enter")
        assert "Latency▼" in screen.list.render_line(0).text


@pytest.mark.long
async def test_z_offers_the_columns_and_sorts_by_the_chosen_one(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("j", "j")
        await screen.pilot.press("z")
        await screen.pilot.pause()
        assert isinstance(screen.pilot.app.screen, Menu)
        await screen.pilot.press(*["down"] * 7, "enter")
        await screen.settle()
        names = cells_of(screen, "API")
        assert names == sorted(names)
        assert "API▲" in screen.list.render_line(0).text
        assert screen.list.cursor == 0
        await screen.press("j", "j")
        await screen.press("Z")
        names = cells_of(screen, "API")
        assert names == sorted(names, reverse=True)
        assert "API▼" in screen.list.render_line(0).text
        assert screen.list.cursor == 0


@pytest.mark.exhaustive
async def test_escape_closes_the_menu_and_keeps_the_order(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.pilot.press("z")
        await screen.pilot.pause()
        await screen.pilot.press("j", "k", "j", "escape")
        await screen.settle()
        assert screen.main.appearance.sorting is None


@pytest.mark.long
async def test_clicks_on_a_heading_sort_reverse_and_restore_the_order(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        capture = screen.main.capture
        versions = [each.row.version for each in capture.exchanges() if each.row.version is not None]
        await _click_head(screen, "v")
        assert cells_of(screen, "v")[0] == str(min(versions))
        assert screen.notifications() == ["sorted by v, ascending; Z reverses, z chooses"]
        await _click_head(screen, "v")
        await screen.press("g")
        assert cells_of(screen, "v")[0] == str(max(versions))
        await _click_head(screen, "v")
        await screen.press("g")
        assert [screen.main.view.number(n) for n in range(len(capture))] == list(range(len(capture)))
        await screen.press("G")
        await _click_head(screen, "Out")
        sizes = [size for e in capture.exchanges() if (size := e.row.request_size) is not None]
        assert capture.exchange(screen.main.view.number(0)).row.request_size == max(sizes)
        assert screen.list.cursor == 0
        await _click_head(screen, "Out")
        assert capture.exchange(screen.main.view.number(0)).row.request_size == min(sizes)
        await _click_head(screen, "Out")
        await _click_head(screen, "Info")
        assert screen.main.appearance.sorting is None
