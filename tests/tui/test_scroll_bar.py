"""Scroll bars that appear after their widget has scrolled."""

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.scroll_view import ScrollView

from tests.cases import cases
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.cell_list import CellList
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree
from tui.widgets.line_list import LineList
from tui.widgets.scrolling import PlacedScrollBar
from tui.widgets.sequence_view import SequenceView


class Pane(ScrollView, PlacedScrollBar):
    """A pane whose rows come late."""


class Panes(App[None]):
    def compose(self) -> ComposeResult:
        with Vertical():
            yield Pane()


async def test_a_bar_that_appears_late_is_where_its_pane_is_scrolled_to() -> None:
    app = Panes()
    async with app.run_test(size=(20, 5)) as pilot:
        pane = app.query_one(Pane)
        pane.virtual_size = pane.size.with_height(50)
        await pilot.pause()
        pane.show_vertical_scrollbar = False
        pane.scroll_to(y=7, animate=False, force=True, immediate=True)
        assert pane.scroll_y == 7
        pane.show_vertical_scrollbar = True
        await pilot.pause()
        assert pane.vertical_scrollbar.position == 7


@cases("pane", [BytesPane, CellList, ExchangeList, FieldTree, LineList, SequenceView])
def test_all_panes_have_such_a_bar(pane: type) -> None:
    assert issubclass(pane, PlacedScrollBar)
