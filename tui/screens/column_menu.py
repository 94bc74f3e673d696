"""The menu of columns: show, hide, move and resize them. It is in front of the list, which changes at once."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dissector.core.text import clean
from tui.list_columns import LEAST_WIDTH, MOST_WIDTH, ListColumn
from tui.screens.dialog import Dialog
from tui.widgets.options import Options


class ColumnMenu(Dialog[None]):
    """All columns, those that are shown first and in their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,C", "dismiss", "Close", tooltip="Close", id="columns.close"),
        Binding("space", "show_or_hide", "Show/hide", tooltip="Show or hide the column", id="columns.toggle"),
        Binding("K,shift+up", "shift(-1)", "Left", tooltip="Move the column left", id="columns.left"),
        Binding("J,shift+down", "shift(1)", "Right", tooltip="Move the column right", id="columns.right"),
        Binding("plus", "widen(1)", "Wider", key_display="+", tooltip="Make the column wider", id="columns.wider"),
        Binding(
            "minus", "widen(-1)", "Narrower", key_display="-", tooltip="Make the column narrower", id="columns.narrower"
        ),
        Binding("u", "usual", "Default", tooltip="Show the default columns: as many as fit", id="columns.usual"),
        Binding("j", "down", "Down", show=False, id="columns.down"),
        Binding("k", "up", "Up", show=False, id="columns.up"),
    ]

    def __init__(
        self,
        shown: list[ListColumn],
        offered: Sequence[ListColumn],
        choose: Callable[[list[ListColumn] | None], list[ListColumn]],
    ) -> None:
        """`offered` are all that can be shown; `choose` takes the columns to show, None for the default ones, and
        returns those that are shown."""
        super().__init__()
        self._choose, self._offered = choose, offered
        self._take(shown)

    def _take(self, shown: list[ListColumn]) -> None:
        names = {column.name for column in shown}
        self._shown = names
        self._columns = [*shown, *(column for column in self._offered if column.name not in names)]

    def compose(self) -> ComposeResult:
        options = Options(id="menu", markup=False)
        options.border_title = "Columns"
        options.border_subtitle = "space show · J K move · + - width · u default"
        yield options

    def on_mount(self) -> None:
        self._draw(0)
        self.query_one(OptionList).focus()

    def _draw(self, at: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(self._line(column), id=column.name) for column in self._columns)
        options.highlighted = at

    def _line(self, column: ListColumn) -> Text:
        sign = "■" if column.name in self._shown else "□"
        name = clean(column.name)
        width = max(len(clean(each.name)) for each in self._columns)
        return Text.assemble(
            f"{sign} ", (f"{name:<{width}} ", "bold"), f"{column.width:>3}  ", (clean(column.words), "dim")
        )

    @property
    def _at(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _changed(self, at: int) -> None:
        self._choose([column for column in self._columns if column.name in self._shown])
        self._draw(at)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """By its name: the column may be at another place since, or gone."""
        names = [column.name for column in self._columns]
        if event.option_id in names:
            self._show_or_hide(names.index(event.option_id))

    def action_show_or_hide(self) -> None:
        self._show_or_hide(self._at)

    def _show_or_hide(self, at: int) -> None:
        self._shown ^= {self._columns[at].name}
        self._changed(at)

    def action_shift(self, step: int) -> None:
        at = self._at
        to = max(0, min(len(self._columns) - 1, at + step))
        self._columns.insert(to, self._columns.pop(at))
        self._changed(to)

    def action_widen(self, step: int) -> None:
        at, column = self._at, self._columns[self._at]
        self._columns[at] = column._replace(width=max(LEAST_WIDTH, min(MOST_WIDTH, column.width + step)))
        self._changed(at)

    def action_usual(self) -> None:
        self._take(self._choose(None))
        self._draw(0)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()
