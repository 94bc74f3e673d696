"""Filters and columns from fields and cells."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dissector.capture_session import Capture
from dissector.filter import FilterError, parse
from tests.conftest import PCAPS, some_of
from tests.tui.main_driver import JAVA, Screen, to
from tui.app import KDissectApp
from tui.exchange_model import ExchangeModel
from tui.labels import path_values
from tui.list_columns import INFO, all_columns, column_of
from tui.messages import AddColumn, ApplyFilter
from tui.screens.main_screen import MainScreen
from tui.value_filters import cell_filters, column_filter, field_filter


class Recorder(MainScreen):
    """Records the messages."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.filters: list[tuple[str, bool]] = []
        self.columns: list[str] = []

    def on_apply_filter(self, event: ApplyFilter) -> None:
        self.filters.append((event.text, event.prepare))
        event.prevent_default()  # other tests apply it

    def on_add_column(self, event: AddColumn) -> None:
        self.columns.append(event.path)
        event.prevent_default()


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[Screen, Recorder]]:
    with Capture([JAVA]) as capture:
        main = Recorder(capture)
        async with KDissectApp(main).run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen, main


@pytest.mark.long
async def test_a_field_becomes_a_filter_and_a_column() -> None:
    async with recording() as (screen, main):
        await to(screen, "CreateTopics")
        assert main.model.traced is not None
        node = main.model.traced.message.tree.find("body.topics[0].name")
        assert node is not None
        screen.fields.focus()
        main.choose_field(node)
        await screen.settle()
        await screen.press("a", "A", "c")
        text = "request.body.topics.name == java-orders"
        assert main.filters == [(text, False), (text, True)]
        assert main.columns == ["request.body.topics.name"]
        screen.bytes.focus()
        await screen.press("a")
        assert main.filters[-1] == (text, False)


@pytest.mark.exhaustive
async def test_in_the_list_a_filters_by_the_row() -> None:
    async with recording() as (screen, main):
        await to(screen, "CreateTopics")
        await screen.press("a")
        assert main.filters == [("api == CreateTopics", False)]
        await screen.press("A", "down", "enter")
        assert main.filters[-1] == (f"conn == {main.capture.rows.connection_of(screen.row)}", True)


@pytest.mark.exhaustive
async def test_in_the_list_a_filters_by_the_selected_column() -> None:
    async with recording() as (screen, main):
        await to(screen, "CreateTopics")
        names = [column.name for column in screen.list.columns()]
        await screen.press("right")
        assert screen.list.column == "API"
        await screen.press("right", "a")
        assert screen.list.column == names[names.index("API") + 1] == "v"
        version = main.capture.exchange(screen.row).row.version
        assert main.filters == [(f"version == {version}", False)]
        await screen.press(*["left"] * 20, "a")
        assert main.filters[-1] == (f"number == {screen.row + 1}", False)
        await to(screen, "JoinGroup")
        screen.list.column = "Latency"
        await screen.press("a")
        latency_ns = main.capture.exchange(screen.row).row.latency_ns
        assert latency_ns is not None
        assert main.filters[-1][0] == f"latency >= {latency_ns // 1_000_000}ms"
        await screen.press(*["right"] * 20)
        assert screen.list.column == names[-1]


@pytest.mark.exhaustive
async def test_a_click_selects_a_cell_and_underlines_it() -> None:
    async with recording() as (screen, main):
        await to(screen, "CreateTopics")
        drawn = screen.lines().splitlines()[screen.list.region.y]
        line = screen.row - screen.list.scroll_offset.y + 1
        await screen.pilot.click(screen.list, offset=(drawn.index("Conn") + 3, line))
        await screen.press("a")
        assert main.filters == [(f"conn == {main.capture.rows.connection_of(screen.row)}", False)]
        for y in (0, line):
            underlined = [
                part.text.strip() for part in screen.list.render_line(y) if part.style and part.style.underline
            ]
            assert underlined == [["Conn", f"C{main.capture.rows.connection_of(screen.row)}"][y > 0]]


@pytest.mark.long
async def test_the_size_prefix_is_the_size_of_the_column_and_of_the_filter() -> None:
    async with recording() as (screen, main):
        size = main.capture.exchange(0).row.request_size
        await screen.press("enter", "g")
        assert f"request, size prefix · {size - 4}" in screen.text("#inspector")
        await screen.press("a", "c")
        assert main.filters == [(f"request.size == {size}", False)]
        assert main.columns == ["request.size"]


@pytest.mark.long
async def test_a_value_without_a_filter_is_reported() -> None:
    async with recording() as (screen, main):
        await screen.press("enter", "g", "j")
        assert main.model.node is not None
        main.model.node.name = "(count)"
        await screen.press("c")
        assert main.columns == []
        assert any("select a field" in words for words in screen.notifications())


COLUMNS = [column.name for column in all_columns()]


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["java", "librdkafka", "java-kip848"], "java-kip848"))
def test_a_filter_matches_the_exchange_that_it_was_made_from(name: str) -> None:
    matched = 0
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        for _ in capture.read():
            pass
        model = ExchangeModel(capture)
        for number in range(0, len(capture), 4):
            model.choose(number)
            assert model.exchange is not None
            assert model.traced is not None
            for cell, text in cell_filters(model.exchange):
                assert parse(text).matches(model.exchange), (cell, text)
            for column in (*COLUMNS, INFO, "request.topics.name", "response.throttle_time_ms", "request.size"):
                text = column_filter(model.exchange, column)
                if text is None:
                    assert not path_values(model.exchange, column_of(column).field), (column, number)
                    continue
                assert parse(text).matches(model.exchange), (column, text)
            for node in list(model.traced.message.tree.walk())[::7]:
                model.node = node
                try:
                    text = field_filter(model) or ""
                except FilterError:
                    continue
                assert parse(text).matches(model.exchange), text
                matched += 1
    assert matched > 20
