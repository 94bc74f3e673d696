"""ctrl+f, n and N, driven by keys and clicks."""

import asyncio
import threading
from functools import partial

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from dissector.core.arrays import Int64
from tests.tui.main_driver import JAVA, Screen, opened
from tests.tui.shared_screens import SharedScreens
from tui.features.row_search import Go, RowSearchFeature
from tui.features.search import SearchDialog


async def ask(pilot: Pilot[None], text: str, *switches: str) -> None:
    """Search something."""
    await pilot.press("ctrl+f")
    await pilot.pause()
    for key in switches:
        await pilot.press(key)
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")


async def look_for(screen: Screen, text: str, *switches: str) -> None:
    await ask(screen.pilot, text, *switches)
    await screen.settle()


@pytest.mark.long
async def test_text_is_found_in_this_exchange_then_in_others_and_from_the_start_again(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await look_for(screen, "java-orders")
        model = screen.main.model
        first = screen.main.place
        assert first is not None
        assert model.source is not None
        assert model.selection is not None
        assert model.source.data[model.selection.start : model.selection.stop] == b"java-orders"
        places = [first]
        for _ in range(200):
            await screen.press("n")
            place = screen.main.place
            assert place is not None
            if place == first:
                break
            places.append(place)
        assert screen.main.place == first
        assert len({place.number for place in places}) > 5
        assert any("from the start" in words for words in screen.notifications())
        await screen.press("N")
        assert screen.main.place == places[-1]
        assert any("from the end" in words for words in screen.notifications())
        await screen.press("N")
        assert screen.main.place == places[-2]


@pytest.mark.exhaustive
async def test_a_hit_is_highlighted_in_tree_and_bytes(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await look_for(screen, "java-orders")
        node = screen.fields.cursor_node
        assert node is not None
        assert node.data is screen.main.model.node
        label = screen.fields.render_label(node, screen.fields.rich_style, screen.fields.rich_style)
        assert any("underline" in str(span.style) for span in label.spans)
        drawn = [segment for y in range(20) for segment in screen.bytes.render_line(y)]
        selected = screen.bytes.get_component_rich_style("bytes--selected")
        assert any(segment.style == selected for segment in drawn)


@pytest.mark.exhaustive
async def test_bytes_and_fields_are_found_by_their_kinds(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await look_for(screen, "6a 61 76 61", "tab")
        model = screen.main.model
        assert model.source is not None
        assert model.selection is not None
        assert model.source.data[model.selection.start : model.selection.stop] == b"java"
        await look_for(screen, "session_timeout", "tab")  # hex was chosen before: field is the next
        assert screen.path.endswith("session_timeout_ms")


@pytest.mark.long
async def test_an_invalid_search_and_an_empty_result_are_reported(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await look_for(screen, "xyz", "tab")
        assert isinstance(screen.pilot.app.screen, SearchDialog)
        assert "invalid hex" in str(screen.pilot.app.screen.query_one("#how", Static).render())
        await screen.pilot.press("escape")
        await screen.pilot.pause()
        await look_for(screen, "not in here at all")
        assert screen.row == 0
        assert any("no 'not in here at all'" in words for words in screen.notifications())


@pytest.mark.exhaustive
async def test_compressed_records_are_found_and_no_compressed_bytes() -> None:
    async with opened(JAVA) as screen:
        await look_for(screen, "teapot")
        sources = set()
        for _ in range(60):
            node = screen.main.model.node
            assert node is not None
            assert node.name != "(compressed)"
            sources.add(min(1, node.source))
            if node.source:
                break
            await screen.press("f8", "n")
        assert 1 in sources


@pytest.mark.exhaustive
async def test_the_search_dialog_shows_its_text_and_its_switches_take_clicks() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.pilot.press("ctrl+f", *"teapot")
        await screen.pilot.pause()
        assert "teapot" in screen.lines()
        assert screen.pilot.app.screen.styles.background.a < 1
        how = screen.pilot.app.screen.query_one("#how", Static)
        await screen.pilot.click(how, offset=(12, 0))
        assert "[hex]" in str(how.render())
        await screen.pilot.click(how, offset=(25, 0))
        assert "[raw text]" in str(how.render())
        assert "bytes of frames as they are" in str(how.render())


async def test_esc_stops_a_search_at_once(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        begun, stopped = threading.Event(), threading.Event()

        def find(rows: Int64) -> Go | None:
            begun.set()
            stopped.wait(20)
            return partial(screen.main.go_to, int(rows[-1]))

        screen.main.feature(RowSearchFeature).search(1, find, "a needle")
        await asyncio.to_thread(begun.wait, 20)
        await screen.pilot.press("j", "k", "escape")
        stopped.set()
        await screen.settle()
        assert screen.row == 0
        assert not screen.main.feature(RowSearchFeature).stop()
        assert any("stopped searching for a needle" in words for words in screen.notifications())


@pytest.mark.exhaustive
async def test_a_search_where_a_filter_hides_all_rows_finds_nothing(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("slash", *"api==999", "enter")
        assert "0 shown" in screen.lines()
        await screen.press("ctrl+f", *"orders", "enter")
        await screen.press("n", "N", "e", "s", "right_square_bracket")
        assert "no 'orders' in decoded values" in screen.notifications()
