"""The command line: the colon, then a row's number, a command of the palette, or one with an argument."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dissector.core.text import clean
from tui.command_line import (
    CommandError,
    LineCommand,
    completions,
    file_completions,
    of_names,
    run_line,
)
from tui.features.columns import ColumnsFeature
from tui.features.export import ExportFeature
from tui.features.filter import FilterFeature
from tui.features.sort import SortFeature
from tui.key_groups import GO
from tui.list_columns import all_columns
from tui.messages import CompareWith
from tui.recents import FILTERS, recent
from tui.row_order import SortOrder
from tui.screens.command_dialog import CommandDialog
from tui.widgets.filter_bar import Offer


class CommandsFeature(FilterFeature, SortFeature, ColumnsFeature, ExportFeature):
    """Runs what is typed behind the colon."""

    FEATURE = GO

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("colon", "command", "Command", key_display=":", show=False, id="main.command",
                tooltip="Type a row's number or a command, with completion"),
    ]  # fmt: skip

    def action_command(self) -> None:
        """Ask for a command."""
        self._ask_command()

    def _ask_command(self, text: str = "", error: str = "") -> None:
        commands = [*self._line_commands()]

        def run(typed: str | None) -> None:
            if typed is None:
                return
            try:
                run_line(commands, typed, self._go_to_number)
            except CommandError as wrong:
                self._ask_command(typed, str(wrong))

        self.app.push_screen(CommandDialog(partial(completions, commands), text, error), run)

    def _go_to_number(self, number: int) -> None:
        count = len(self.capture)
        if not 1 <= number <= count:
            self.notify(f"there is no row {number:,}: rows are 1 to {count:,}", timeout=3)
        elif not self.go_to(number - 1):
            self.notify(f"row {number:,} is hidden by the filter", timeout=3)

    def _line_commands(self) -> Iterator[LineCommand]:
        """The commands with an argument, then those of keys."""
        yield from self._with_arguments()
        named = {each.name for each in self._with_arguments()}
        for node, binding, enabled, tooltip in self.active_bindings.values():
            name = (binding.id or "").rpartition(".")[2]
            if binding.description and enabled and name and name not in named:
                named.add(name)
                run = partial(self.app.run_action, binding.action, node)
                yield LineCommand(
                    name.replace("_", "-"), tooltip or binding.description, partial(self._run_action, run)
                )

    def _run_action(self, run: Callable[[], object], _argument: str) -> None:
        self.call_later(run)

    def _with_arguments(self) -> Iterator[LineCommand]:
        yield LineCommand("filter", "show only exchanges that match", self._filter_command, "FILTER", self._filters)
        yield LineCommand(
            "write", "write the rows that are shown; the suffix chooses the format", self._write_command, "FILE",
            file_completions, needs_argument=True,
        )  # fmt: skip
        yield LineCommand("w", "the same", self._write_command, "FILE", file_completions, needs_argument=True)
        yield LineCommand(
            "column", "show or hide a column", self._column_command, "NAME", of_names(_columns), needs_argument=True
        )
        yield LineCommand("sort", "sort the list by a column", self._sort_command, "COLUMN", of_names(_sortable))
        yield LineCommand(
            "theme", "choose a theme", self._theme_command, "NAME",
            of_names(lambda: [(name, "") for name in self.app.available_themes]), needs_argument=True,
        )  # fmt: skip
        yield LineCommand("diff", "compare with another capture", self._diff_command, "FILE", file_completions)
        yield LineCommand("goto", "go to a row", self._goto_command, "NUMBER", needs_argument=True)
        yield LineCommand("q", "quit kdissect", lambda _: self.app.exit())

    def _filters(self, text: str, cursor: int) -> Iterator[Offer]:
        from dissector.filter import complete

        if not text:
            yield from (Offer(0, 0, each, "recent") for each in recent(FILTERS)[:5])
        yield from (Offer(*each) for each in complete(text, cursor))

    def _filter_command(self, text: str) -> None:
        if text:
            self.apply_filter(text)
        else:
            self.action_filter()

    def _column_command(self, name: str) -> None:
        known = {each.name.casefold(): each.name for each in all_columns()} | {
            each.field: each.name for each in all_columns()
        }
        found = known.get(name) or known.get(name.casefold())
        if found is None and not name.startswith(("request.", "response.")):
            raise CommandError(clean(f"unknown column {name!r}"))
        self.toggle_column(found or name)

    def _sort_command(self, name: str) -> None:
        if not name:
            self.action_sort()
            return
        known = {each[0].casefold(): each[0] for each in _sortable()}
        if name.casefold() not in known:
            raise CommandError(clean(f"can't sort by {name!r}"))
        self.sort_by(SortOrder(known[name.casefold()]))

    def _theme_command(self, name: str) -> None:
        if name not in self.app.available_themes:
            raise CommandError(clean(f"unknown theme {name!r}"))
        self.app.theme = name

    def _diff_command(self, name: str) -> None:
        if not self.is_read():
            return
        if name:
            self.post_message(CompareWith(self.capture, name))
        else:
            self.call_later(self.app.run_action, "compare", self)

    def _goto_command(self, number: str) -> None:
        if not number.isascii() or not number.isdecimal():
            raise CommandError(clean(f"{number!r} is not a row's number"))
        self._go_to_number(int(number[:18]))

    @work(group="export", exclusive=True)
    async def _write_command(self, name: str) -> None:
        """Write the rows that are shown."""
        await self.write_rows(Path(name).expanduser())


def _columns() -> list[tuple[str, str]]:
    return [(each.name, each.words) for each in all_columns()]


def _sortable() -> list[tuple[str, str]]:
    return [(each.name, each.words) for each in all_columns() if each.is_indexed]
