"""The IO graph on the screen: opened from the list, brushed, filtered, narrowed to a part."""

import pytest
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tests.tui.main_driver import JAVA, Screen
from tests.tui.shared_screens import SharedScreens
from tui.screens.dialog import Menu
from tui.screens.io_graph_screen import IoGraphScreen
from tui.widgets.io_graph_view import MARGIN, IoGraphView


def view(screen: Screen) -> IoGraphView:
    return screen.pilot.app.screen.query_one(IoGraphView)


def said(screen: Screen) -> str:
    return str(screen.pilot.app.screen.query_one("#inspector", Static).render())


@pytest.mark.long
async def test_a_span_that_is_brushed_becomes_a_filter(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("I")
        graph = view(screen).graph
        assert graph is not None
        assert graph.exchanges.sum() == len(screen.main.capture)
        await screen.press("ctrl+right", "shift+right", "shift+right", "shift+right", "shift+right", "shift+left")
        slots = view(screen).slots
        assert (slots.start, slots.stop) == (10, 14)
        wanted = int(graph.exchanges[10:14].sum())
        assert f"{wanted} exchange" in said(screen)
        assert wanted
        await screen.press("enter")
        assert screen.pilot.app.screen is screen.main
        assert len(screen.main.view) == wanted
        await screen.press("I", "G", "shift+left", "enter")
        assert " && time >= " in screen.main.filter._run.filter.text.partition(")")[2]


@pytest.mark.exhaustive
async def test_the_mouse_brushes_and_escape_drops_the_span_first(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("I")
        pilot = screen.pilot
        await pilot.mouse_down(IoGraphView, offset=(MARGIN + 3, 5))
        await pilot.hover(IoGraphView, offset=(MARGIN + 9, 5))
        await pilot.mouse_up(IoGraphView, offset=(MARGIN + 9, 5))
        await screen.settle()
        assert (view(screen).slots.start, view(screen).slots.stop) == (3, 10)
        await screen.press("z")
        assert view(screen).is_zoomed
        await screen.press("z")
        assert not view(screen).is_zoomed
        await screen.press("shift+right", "escape")
        assert isinstance(pilot.app.screen, IoGraphScreen)
        await screen.press("escape")
        assert pilot.app.screen is screen.main


@pytest.mark.exhaustive
async def test_one_api_is_drawn_by_itself(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("I")
        for key in ("a", "down", "enter"):
            await screen.pilot.press(key)
        await screen.until(lambda: isinstance(screen.pilot.app.screen, Menu) and len(_options(screen)) > 5)
        first = str(_options(screen)[0].prompt).split()
        await screen.pilot.press("enter")
        await screen.until(lambda: isinstance(screen.pilot.app.screen, IoGraphScreen))
        await screen.settle()
        graph = view(screen).graph
        assert graph is not None
        assert f"{graph.exchanges.sum()}" == first[1]
        assert first[0] in str(screen.pilot.app.screen.query_one("#title", Static).render())
        await screen.press("enter")
        assert screen.main.filter._run.filter.text.startswith(f"api == {first[0]} && time >= ")


def _options(screen: Screen) -> list[Option]:
    return list(screen.pilot.app.screen.query_one(OptionList).options)


@pytest.mark.long
async def test_keys_that_come_when_it_is_gone_do_nothing(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("I")
        graph = screen.pilot.app.screen
        assert isinstance(graph, IoGraphScreen)
        await screen.press("escape")
        graph.action_back()
        graph.action_zoom()
        await screen.settle()
        assert screen.pilot.app.screen is screen.main
