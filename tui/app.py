"""The application: opens captures on the main screen, with the user's preferences."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import PurePath
from typing import ClassVar, Protocol

from textual.app import SystemCommand
from textual.binding import Binding
from textual.command import Provider
from textual.dom import DOMNode
from textual.screen import Screen
from textual.theme import Theme

from dissector.analysis.diff import DiffSide
from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.core.text import clean
from dissector.detection.decode_as import DecodeAs
from tui import settings
from tui.feature import PROGRAM
from tui.features.decode_as import DecodeAsFeature
from tui.messages import (
    CaptureFailed,
    CompareWith,
    OpenDetail,
    ReadAgain,
    SaveEntry,
    SavePreference,
)
from tui.palette import Commands, Palette, action_commands, choice_commands
from tui.recents import capture_words, recent_captures, remember_capture
from tui.screens.dialog import Choice, Menu
from tui.screens.diff_screen import DiffScreen
from tui.screens.main_screen import DetailScreen, LiveDetailScreen, MainScreen
from tui.terminal_app import TerminalApp
from tui.theme import KDISSECT, OURS, THEME_WORDS


class Opener(Protocol):
    """Opens captures."""

    def __call__(self, paths: Sequence[str], /, *, decode_as: Sequence[DecodeAs] = ...) -> Capture:
        """Raises `CaptureError`. Without `decode_as` what the command line says of connections holds."""


class KDissectApp(TerminalApp):
    """kdissect on a terminal. Without a first screen it offers recent captures, and `opener` opens them."""

    TITLE = "kdissect"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Palette}

    def __init__(self, main: Screen[None] | None = None, opener: Opener = Capture) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._main = main
        self._opener = opener
        self._opened = ExitStack()
        """Captures that were opened here. They are closed at the end: a thread may still read the last one."""
        self._settings = settings.load()
        self.error: CaptureError | None = None
        """The error that ended the application."""

    def on_mount(self) -> None:
        for theme in OURS:
            self.register_theme(theme)
        self._apply_settings()
        if self._main is not None:
            self._show(self._main)
        else:
            self._offer_recent()

    def on_unmount(self) -> None:
        self._opened.close()

    def _apply_settings(self) -> None:
        """Apply the user's preferences, and report the first problem with them."""
        wanted, problem = self._settings.theme or KDISSECT.name, self._settings.problem
        if wanted not in self.available_themes:
            problem = problem or f"config.toml: unknown theme {wanted!r}; themes are {', '.join(self.available_themes)}"
            wanted = KDISSECT.name
        self.theme = wanted
        self.theme_changed_signal.subscribe(self, self._theme_chosen)
        known = set(_binding_ids())
        unknown = [name for name in self._settings.keys if name not in known]
        if unknown:
            problem = problem or f"config.toml: unknown key id {unknown[0]!r}"
        self.set_keymap(self._settings.keys)
        if problem:
            self.notify(clean(problem), severity="warning", markup=False, timeout=8)

    def _theme_chosen(self, theme: Theme) -> None:
        if theme.name != (self._settings.theme or KDISSECT.name):
            self._settings.theme = theme.name
            self._keep(settings.THEME, theme.name)

    def on_save_preference(self, message: SavePreference) -> None:
        self._keep(message.name, message.value)

    def on_save_entry(self, message: SaveEntry) -> None:
        """Keep a filter, a profile or a coloring rule."""
        try:
            settings.change_entry(message.table, message.name, message.value)
        except (OSError, ValueError) as error:
            words = clean(f"not saved: {error}")
            self.notify(words, severity="warning", markup=False, timeout=4)

    def _keep(self, name: str, value: str | list[str] | None) -> None:
        try:
            settings.change(name, value)
        except (OSError, ValueError) as error:
            words = clean(f"preference not saved: {error}")
            self.notify(words, severity="warning", markup=False, timeout=4)

    def _show(self, main: Screen[None], *, instead: bool = False) -> None:
        """Show a screen with the user's preferences; `instead` of the one that is shown."""
        if isinstance(main, MainScreen):
            appearance = main.appearance
            appearance.columns, appearance.color_by = self._settings.columns, self._settings.colors
            appearance.time, appearance.saved = self._settings.time, self._settings.saved
            appearance.layout = self._settings.layout
        if instead:
            self.switch_screen(main)
        else:
            self.push_screen(main)

    def _offer_recent(self) -> None:
        captures = recent_captures()

        def chosen(number: int | None) -> None:
            if number is None or not self.open_files(captures[number]):
                self.exit()

        choices = [Choice(*capture_words(paths)) for paths in captures]
        self.push_screen(Menu("Open a capture", choices), chosen)

    def open_files(self, paths: Sequence[str]) -> bool:
        """Open another capture in place of the one that is shown; return whether it could be."""
        try:
            capture = self._opened.enter_context(self._opener(paths))
        except CaptureError as error:
            self.notify(clean(str(error)), severity="error", markup=False, timeout=6)
            self.error = error if self._main is None else None
            return False
        remember_capture(paths)
        self._replace(MainScreen(capture))
        return True

    def _replace(self, main: MainScreen) -> None:
        """Show another main screen in place of the one that is shown."""
        self._settings = settings.load()
        before, self._main = self._main, main
        self._show(main, instead=before is not None)

    def on_read_again(self, message: ReadAgain) -> None:
        before = message.screen
        if not isinstance(before, MainScreen) or before is not self._main:
            self.notify("not here: go back to the capture's own screen first", timeout=4)
            return
        paths = [source for source in before.capture.sources if isinstance(source, str)]
        try:
            capture = self._opened.enter_context(self._opener(paths, decode_as=message.decode_as))
        except CaptureError as error:
            self.notify(clean(str(error)), severity="error", markup=False, timeout=6)
            return
        main = MainScreen(capture)
        main.feature(DecodeAsFeature).begin_with(message.filter, message.time_ns)
        self._replace(main)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return the palette's commands in groups: an action of this screen once, with all its keys; themes; recent
        filters and captures; columns."""
        yield from action_commands(self, screen)
        yield SystemCommand(f"{PROGRAM}: Theme", "Choose the colors of the program", self.action_change_theme)
        if isinstance(screen, MainScreen):
            yield from choice_commands(screen, self.open_files)

    def action_change_theme(self) -> None:
        """Offer our themes, and those of Textual behind one more choice."""

        def chosen(number: int | None) -> None:
            if number is not None and number < len(OURS):
                self.theme = OURS[number].name
            elif number is not None:
                self.search_themes()

        at = next((n for n, theme in enumerate(OURS) if theme.name == self.theme), len(OURS))
        self.push_screen(Menu("Theme", [*(Choice(*words) for words in THEME_WORDS), Choice("Others…")], at), chosen)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Commands):
            self.push_screen(Commands(id="--command-palette"))

    def on_capture_failed(self, message: CaptureFailed) -> None:
        self.error = message.error
        self.exit(return_code=2)

    def on_compare_with(self, message: CompareWith) -> None:
        try:
            other = self._opened.enter_context(self._opener([message.path]))
        except CaptureError as error:
            self.notify(clean(str(error)), severity="error", markup=False, timeout=6)
            return
        remember_capture([message.path])
        sides = [DiffSide(capture, PurePath(capture.names[0]).stem) for capture in (message.capture, other)]
        self.push_screen(DiffScreen(sides[0], sides[1]))

    def on_open_detail(self, message: OpenDetail) -> None:
        kind = DetailScreen if message.capture.is_read else LiveDetailScreen
        self.push_screen(kind(message.capture, message.place, message.filter))


def _binding_ids(kind: type[DOMNode] = DOMNode) -> Iterator[str]:
    """Yield the ids of all key bindings."""
    own = kind.__dict__.get("BINDINGS", ())
    yield from (each.id for each in own if isinstance(each, Binding) and each.id is not None)
    for each in kind.__subclasses__():
        yield from _binding_ids(each)
