"""How rows look: by what they are colored, with a legend; the time format; the columns, chosen from a menu or made from
a field.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from rich.text import Text
from textual.binding import Binding
from textual.widgets import Static

from dissector.core.text import clean
from tui.command_line import CommandError, LineCommand, of_names
from tui.feature import LIST, ScreenFeature
from tui.list_columns import INFO, ListColumn, all_columns, column_of, offered_columns
from tui.messages import AddColumn, SavePreference
from tui.row_colors import ColorBy
from tui.screens.column_menu import ColumnMenu
from tui.screens.core_screen import CoreScreen
from tui.settings import COLORS, COLUMNS, TIME
from tui.time_format import TimeFormat, date_text


class ListAppearanceFeature(ScreenFeature[CoreScreen]):
    """v changes the colors, t and T the times, C the columns."""

    GROUP = LIST

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("v", "colors", "Colors", show=False, tooltip="Color rows by severity, API, latency or connection",
                id="main.colors"),
        Binding("t", "time_format", "Time format", show=False, tooltip="Cycle the time format", id="main.time"),
        Binding("T", "time_reference", "Time reference", show=False,
                tooltip="Count times from this row; again: from the start", id="main.time_reference"),
        Binding("C", "columns", "Columns", show=False, tooltip="Choose the columns of the list", id="main.columns"),
    ]  # fmt: skip

    def commands(self) -> Iterator[LineCommand]:
        names = of_names(lambda: [(each.name, each.words) for each in self.offered_columns()])
        yield LineCommand("column", "show or hide a column", self._column_command, "NAME", names, needs_argument=True)

    # Colors.

    def mounted(self) -> None:
        self.app.theme_changed_signal.subscribe(self.screen, lambda _: self._draw_colors())
        self._draw_colors()

    def action_colors(self) -> None:
        """Switch to the next one."""
        color_by = self.screen.appearance.color_by.next
        self.color_rows(color_by)
        self.screen.post_message(SavePreference(COLORS, color_by.value))
        self.notify(f"rows colored by {color_by.value}", timeout=2)

    def color_rows(self, color_by: ColorBy) -> None:
        self.screen.appearance.color_by = color_by
        self._draw_colors()

    def _draw_colors(self) -> None:
        """Draw the legend, and all rows again."""
        color_by = self.screen.appearance.color_by
        legend = Text(f"{color_by.value}:")
        for words, hue in color_by.legend():
            style = "" if hue is None else self.screen.exchange_list.hue_style(hue)
            legend.append(" ").append(f"■{words}", style)
        line = self.screen.query_one("#legend", Static)
        line.update(legend)
        line.set_class(color_by is not ColorBy.SEVERITY, "shown")
        self.screen.exchange_list.update_rows()

    # Times.

    def action_time_format(self) -> None:
        """Switch to the next format; the one that needs a reference is skipped without one."""
        form = self.screen.appearance.time.next
        if form is TimeFormat.SINCE_REFERENCE and self.screen.appearance.reference is None:
            form = form.next
        self._tell_time(form)

    def action_time_reference(self) -> None:
        if not len(self.screen.view):
            return
        same = self.screen.appearance.reference == self.screen.number
        self.screen.appearance.reference = None if same else self.screen.number
        self._tell_time(TimeFormat.START if same else TimeFormat.SINCE_REFERENCE)

    def _tell_time(self, form: TimeFormat) -> None:
        self.screen.appearance.time = form
        self.screen.exchange_list.update_rows()
        # a reference is a row of this capture: not for the next one
        saved = None if form is TimeFormat.SINCE_REFERENCE else form.value
        self.screen.post_message(SavePreference(TIME, saved))
        date = date_text(self.screen.capture.start_ns, form)
        self.notify(f"{form.words}{f', from {date}' if date else ''}", timeout=2)

    def rows_renumbered(self) -> None:
        appearance = self.screen.appearance
        if appearance.reference is not None:
            appearance.reference = int(self.screen.capture.rows.after_sort(np.array([appearance.reference]))[0])

    # Columns.

    def action_columns(self) -> None:
        self.app.push_screen(ColumnMenu(self._columns_shown(), self.offered_columns(), self.choose_columns))

    def offered_columns(self) -> Sequence[ListColumn]:
        """The columns that this capture may fill."""
        capture = self.screen.capture
        return offered_columns(processes=not capture.is_read or capture.processes.are_known)

    def _column_command(self, name: str) -> None:
        known = {each.name.casefold(): each.name for each in all_columns()} | {
            each.field: each.name for each in all_columns()
        }
        found = known.get(name) or known.get(name.casefold())
        if found is None and not name.startswith(("request.", "response.")):
            raise CommandError(clean(f"unknown column {name!r}"))
        self.toggle_column(found or name)

    def toggle_column(self, name: str) -> None:
        """Show or hide a column."""
        shown = self._columns_shown()
        others = [column for column in shown if column.name != name]
        self.choose_columns(others if len(others) < len(shown) else [*shown, column_of(name)])

    def _columns_shown(self) -> list[ListColumn]:
        return [column for column in self.screen.exchange_list.columns() if column.name != INFO]

    def choose_columns(self, shown: list[ListColumn] | None) -> list[ListColumn]:
        """Show these, or the default ones with None; return those that are shown then."""
        if shown is None:
            self.screen.appearance.columns.chosen = None
        else:
            self.screen.appearance.columns.choose(shown)
        self._columns_changed()
        return self._columns_shown()

    def _columns_changed(self) -> None:
        self.screen.exchange_list.update_rows()
        self.screen.post_message(SavePreference(COLUMNS, self.screen.appearance.columns.words()))

    def on_add_column(self, event: AddColumn) -> None:
        if self.screen.appearance.columns.add(event.path, self._columns_shown()):
            self._columns_changed()
            self.notify(f"column {clean(event.path)} added; C changes columns", timeout=2)
        else:
            self.notify(f"{clean(event.path)} is already a column", timeout=2)
