"""Messages about what is no longer shown when they are handled: they change nothing."""

import pytest
from textual import events
from textual.widgets import Input, OptionList

from tests.tui.diff_driver import opened as compared
from tests.tui.main_driver import JAVA
from tests.tui.shared_screens import SharedScreens
from tui.screens.compare_dialog import CompareDialog
from tui.widgets.exchange_list import ExchangeList


@pytest.mark.long
async def test_a_byte_of_another_row_selects_no_field(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.bytes.focus()
        sizes = [len(exchange.request.data) for exchange in screen.main.capture.exchanges() if exchange.request]
        screen.main.go_to(sizes.index(max(sizes)))
        await screen.settle()
        screen.bytes.action_go(-1)
        screen.main.go_to(sizes.index(min(sizes)))
        await screen.settle()
        assert screen.main.model.node is None
        assert screen.text("#inspector").startswith("ListGroups v5 · ")


@pytest.mark.long
async def test_selected_bytes_of_another_row_are_not_explained(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.bytes.focus()
        screen.bytes.action_extend(3)
        screen.main.go_to(5)
        await screen.settle()
        assert screen.main.model.selection is None
        assert "selected" not in screen.text("#inspector")


@pytest.mark.long
async def test_a_field_of_another_row_is_not_selected(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("enter")
        screen.fields.cursor_line = 4
        screen.main.go_to(7)
        await screen.settle()
        model = screen.main.model
        assert model.traced is not None
        assert model.node is None or model.traced.has(model.node)


@pytest.mark.long
async def test_a_row_with_an_outdated_number_is_not_shown(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        before = screen.main.model.number
        screen.list.post_message(ExchangeList.RowChosen(5, screen.list.numbering))
        screen.list.follow(0)
        await screen.settle()
        assert screen.main.model.number == before


@pytest.mark.long
async def test_a_byte_of_another_pair_selects_no_field() -> None:
    async with compared() as screen:
        await screen.press("v")
        pane = screen.diff.panes[0]
        sizes = []
        for position in range(len(screen.model.shown)):
            screen.diff.choose_pair(position)
            source = screen.sides[0].source
            sizes.append(len(source.data) if source is not None else 0)
        screen.diff.choose_pair(sizes.index(max(sizes)))
        pane.action_go(-1)
        screen.diff.choose_pair(sizes.index(min(size for size in sizes if size)))
        line = screen.model.line
        await screen.settle()
        assert screen.model.line == line


async def test_a_suggestion_taken_while_others_appear_is_the_one_that_was_shown(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        given: list[str | None] = []
        dialog = CompareDialog(["/captures/a.pcap", "/captures/b.pcap"])
        screen.pilot.app.push_screen(dialog, given.append)
        await screen.settle()
        options, line = dialog.query_one(OptionList), dialog.query_one(Input)
        options.highlighted = 1
        options.action_select()
        dialog.on_input_changed(Input.Changed(line, "a.pcap"))
        await screen.settle()
        assert given == ["/captures/b.pcap"]


async def test_input_behind_the_last_screen_is_dropped(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        app = screen.pilot.app
        screens = app.screen_stack
        app._screen_stack.clear()  # as at the end of the program, while the screen still handles the key
        try:
            event = events.Key("shift+down", None)
            event._set_forwarded()
            await app.on_event(event)
            for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
                await app.on_event(kind(None, 4, 5, 0, 0, 1, False, False, False))
        finally:
            app._screen_stack.extend(screens)
