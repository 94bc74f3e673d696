"""The command line: the colon, then a place to go to, a command that a feature declares, or a key's by its id."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, Final

from textual.binding import Binding

from dissector.core.text import clean
from tui.command_line import CommandError, LineCommand, completions, of_names, run_line
from tui.feature import GO, ScreenFeature
from tui.features.go_to import GoToFeature
from tui.screens.command_dialog import CommandDialog
from tui.screens.core_screen import CoreScreen

FIRST: Final = ("filter", "write", "w", "column", "sort", "goto", "next", "finding", "packet", "theme", "diff", "q")
"""Commands in the order in which they are offered, before all others."""


class CommandsFeature(ScreenFeature[CoreScreen]):
    """Runs what is typed behind the colon."""

    GROUP = GO
    NEEDS_ROWS = False

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("colon", "command", "Command", key_display=":", show=False, id="main.command",
                tooltip="Go to a row's number or a time, or run a command"),
    ]  # fmt: skip

    def action_command(self) -> None:
        """Ask for a command."""
        self._ask_command()

    def _ask_command(self, text: str = "", error: str = "") -> None:
        commands, places = [*self._line_commands()], self.screen.feature(GoToFeature)

        def run(typed: str | None) -> None:
            if typed is None:
                return
            try:
                run_line(commands, typed, places.go_to)
            except CommandError as wrong:
                self._ask_command(typed, str(wrong))

        self.app.push_screen(CommandDialog(partial(completions, commands, places.place_words), text, error), run)

    def _line_commands(self) -> Iterator[LineCommand]:
        """The commands with an argument, then those of keys."""
        declared = [command for each in self.screen.features for command in each.commands()]
        yield from sorted(declared, key=lambda each: FIRST.index(each.name) if each.name in FIRST else len(FIRST))
        named = {each.name for each in declared}
        for node, binding, enabled, tooltip in self.screen.active_bindings.values():
            name = (binding.id or "").rpartition(".")[2]
            if binding.description and enabled and name and name not in named:
                named.add(name)
                run = partial(self.app.run_action, binding.action, node)
                yield LineCommand(
                    name.replace("_", "-"), tooltip or binding.description, partial(self._run_action, run)
                )

    def _run_action(self, run: Callable[[], object], _argument: str) -> None:
        self.screen.call_later(run)

    def commands(self) -> Iterator[LineCommand]:
        themes = of_names(lambda: [(name, "") for name in self.app.available_themes])
        yield LineCommand("theme", "choose a theme", self._theme_command, "NAME", themes, needs_argument=True)
        yield LineCommand("q", "quit kdissect", lambda _: self.app.exit())

    def _theme_command(self, name: str) -> None:
        if name not in self.app.available_themes:
            raise CommandError(clean(f"unknown theme {name!r}"))
        self.app.theme = name
