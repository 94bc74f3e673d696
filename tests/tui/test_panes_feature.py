"""The sizes of panes: dragged borders, keys, resized terminals, the wheel."""

import itertools

import pytest
from textual import events
from textual.widget import Widget

from tests.tui import textual_for_tests
from tests.tui.driver import SIZES
from tests.tui.main_driver import JAVA, Screen, opened


async def drag(screen: Screen, pane: Widget, start: tuple[int, int], by: tuple[int, int]) -> None:
    """From a place of a pane's region, so many cells across and down."""
    pilot, moved = screen.pilot, (start[0] + by[0], start[1] + by[1])
    await pilot.mouse_down(pane, offset=start)
    region = pane.region
    size = pilot.app.size
    to = min(size.width - 1, max(0, region.x + moved[0])), min(size.height - 1, max(0, region.y + moved[1]))
    await pilot.hover(offset=to)
    await pilot.mouse_up(offset=to)
    await screen.settle()


@pytest.mark.long
async def test_the_mouse_drags_borders_and_a_double_click_resets_them() -> None:
    async with opened(JAVA) as screen:
        for pane in (screen.fields, screen.bytes):
            top, height = pane.region.y, screen.list.size.height
            await drag(screen, pane, (9, 0), (0, -5))
            assert (pane.region.y, screen.list.size.height) == (top - 5, height - 5)
            await drag(screen, pane, (9, 0), (0, 8))
            assert (pane.region.y, screen.list.size.height) == (top + 3, height + 3)
            await screen.press("minus")
            assert screen.list.size.height < height + 3
            await screen.pilot.click(pane, offset=(9, 0), times=2)
            await screen.settle()
            assert screen.list.size.height == height
        screen.list.focus()
        await screen.press("9", "G")
        left, width = screen.bytes.region.x, screen.bytes.size.width
        await drag(screen, screen.bytes, (0, 4), (-7, 0))
        assert (screen.bytes.region.x, screen.bytes.size.width) == (left - 7, width + 7)
        await screen.press("greater_than_sign")
        assert screen.bytes.size.width < width + 7
        await screen.pilot.click(screen.bytes, offset=(0, 4), times=2)
        await screen.settle()
        assert screen.bytes.region.x == left


@pytest.mark.long
async def test_a_border_stays_on_the_screen_and_a_move_without_a_button_does_nothing() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await drag(screen, screen.fields, (9, 0), (0, -30))
        assert screen.list.size.height >= 3
        await drag(screen, screen.fields, (9, 0), (0, 30))
        assert screen.fields.size.height >= 2
        await drag(screen, screen.bytes, (0, 2), (-200, 0))
        assert screen.fields.size.width >= 10
        before = screen.bytes.region
        await screen.pilot.hover(screen.bytes, offset=(0, 2))
        await screen.pilot.hover(screen.fields, offset=(3, 2))
        assert screen.bytes.region == before


Hand = tuple[type[events.MouseEvent], tuple[int, int]]


async def at_once(screen: Screen, *hands: Hand) -> None:
    """Mouse events that arrive before the application has handled any of them."""
    for kind, (x, y) in hands:
        screen.pilot.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y))
    await screen.settle()


async def test_mouse_events_may_come_faster_than_they_are_handled() -> None:
    async with opened(JAVA) as screen:
        top, pane = screen.fields.region.y, screen.bytes.region
        await at_once(screen, (events.MouseDown, (9, top)), (events.MouseMove, (9, top - 5)),
                      (events.MouseUp, (9, top - 5)), (events.MouseMove, (9, top - 7)))  # fmt: skip
        assert screen.fields.region.y == top - 5
        byte = pane.x + 12, pane.y - 5 + 2
        await at_once(screen, (events.MouseDown, byte), (events.MouseUp, (9, 4)))
        assert screen.pilot.app.mouse_captured is None
        await at_once(screen, (events.MouseDown, (9, 4)), (events.MouseUp, (9, 4)))
        assert screen.row == 2  # the list has this press, not the pane that had the last one


@pytest.mark.exhaustive
async def test_the_wheel_scrolls_the_list_without_its_cursor() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        first = screen.list.render_line(1).text
        for _ in range(3):
            screen.list.scroll_relative(y=3, animate=False)
        await screen.settle()
        assert screen.list.render_line(1).text != first
        assert screen.row == 0
        screen.main._loaded(screen.main._progress, False)  # rows come: what is looked at stays
        await screen.settle()
        assert screen.list.render_line(1).text != first


CHANGES = [*SIZES, (60, 20), (40, 10), (20, 5), (120, 40)]


@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.exhaustive)])
async def test_the_terminal_changes_its_size_at_any_time(rounds: int) -> None:
    """One round has each key once, five have each at every size."""
    keys = itertools.cycle(["j", "enter", "down", "tab", "slash", "escape", "shift+tab", "v", "C", "escape", "z",
                            "escape", "plus", "less_than_sign", "backslash", "backslash",
                            "question_mark", "escape"])  # fmt: skip
    with textual_for_tests.drawn_after_each_change():
        async with opened(JAVA) as screen:
            for size in CHANGES * rounds:
                await screen.pilot.resize_terminal(*size)
                for _ in range(3):
                    await screen.pilot.press(next(keys))
                await screen.settle()
            assert screen.lines()


@pytest.mark.exhaustive
async def test_list_fields_bytes_and_keys_have_room_at_every_size() -> None:
    async with opened(JAVA, size=SIZES[0]) as screen:
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines().splitlines()
            assert len(drawn) == size[1]
            assert screen.list.size.height >= 5
            assert screen.fields.size.height >= 6
            assert "Help" in drawn[-1]
            assert "Quit" in drawn[-1] or size < (80, 24)
            assert "java.pcapng · 60 exchanges" in drawn[0]
            assert "ApiVersions" in drawn[2]
            for words in ("header", "0000"):
                assert any(words in line for line in drawn), size
