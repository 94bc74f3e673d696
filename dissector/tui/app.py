"""The application: opens captures on the main screen, with the user's preferences."""

import curses
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from textual import events
from textual.app import ScreenStackError, SystemCommand
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import Provider
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.filter import LineFilter
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.theme import Theme

from dissector.analysis.diff import DiffSide, ManualMatches
from dissector.capture import CaptureError
from dissector.capture.live import CaptureSettings, Recording
from dissector.capture_session import Capture
from dissector.core.text import clean
from dissector.detection.decode_as import DecodeAs, of_ports
from dissector.tui import settings
from dissector.tui.dimming import with_dimming
from dissector.tui.hangup import end_with_terminal
from dissector.tui.key_groups import PROGRAM, place
from dissector.tui.list_columns import all_columns
from dissector.tui.messages import (
    ApplyFilter,
    CaptureFailed,
    CompareWith,
    OpenDetail,
    ReadAgain,
    SaveEntry,
    SavePreference,
)
from dissector.tui.notification import TimedNotification
from dissector.tui.palette import Commands, Palette
from dissector.tui.recents import FILTERS, recent, recent_captures, remember_capture
from dissector.tui.screens.detail_screen import DetailScreen
from dissector.tui.screens.diff_screen import DiffScreen
from dissector.tui.screens.help_screen import HelpScreen, feature_of, keys_of
from dissector.tui.screens.live_screen import Begin, LiveScreen
from dissector.tui.screens.main_screen import MainScreen
from dissector.tui.screens.matrix_screen import MatrixScreen
from dissector.tui.screens.menu import Choice, Menu
from dissector.tui.screenshot import one_text_a_word
from dissector.tui.theme import CSS, KDISSECT, OURS, default_variables
from dissector.tui.typeahead import TypeAhead

if TYPE_CHECKING:
    from dissector.records.values.opener import ValueOpener

NAMED: Final = 3
"""Files of a capture that are named where it is offered."""
OFFERED: Final = 20
"""Recent filters and recent captures in the palette."""


class Opener(Protocol):
    """Opens captures."""

    def __call__(self, paths: Sequence[str], /, *, decode_as: Sequence[DecodeAs] = ...) -> Capture:
        """Raises `CaptureError`. Without `decode_as` what the command line says of connections holds."""


LEFT: Final = 128 + signal.SIGINT


class KDissectApp(TypeAhead):
    """kdissect on a terminal. Without a first screen it offers recent captures, and `opener` opens them."""

    CSS = CSS
    TITLE = "kdissect"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Palette}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+p",
            "command_palette",
            "Commands",
            show=False,
            priority=True,
            tooltip="Find any command by its name",
            id="app.palette",
        ),
        Binding(
            "ctrl+s",
            "picture",
            "Screenshot",
            show=False,
            priority=True,
            tooltip="Save a screenshot (SVG)",
            id="app.picture",
        ),
    ]

    def __init__(self, main: Screen[None] | None = None, opener: Opener = Capture) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._main = main
        self._opener = opener
        self._opened = ExitStack()
        """Captures that were opened here. They are closed at the end: a thread may still read the last one."""
        self._settings = settings.load()
        self.error: CaptureError | None = None
        """The error that ended the application."""

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information", timeout: float | None = None,
        markup: bool = True,
    ) -> None:  # fmt: skip
        """Show a notification, for `timeout` seconds."""
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(TimedNotification(message, title, severity, seconds, markup)))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our variables, for themes that are not ours."""
        return default_variables(self.current_theme)

    def get_key_display(self, binding: Binding) -> str:
        """Keys as people write them."""
        return super().get_key_display(binding).replace("^", "ctrl+").replace("⏎", "enter").replace("\u23ce", "enter")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, with ours for dimmed text: it keeps enough of its color to be read."""
        return with_dimming(super().get_line_filters())

    async def on_event(self, event: events.Event) -> None:
        """Drop clicks on what was removed: it is still drawn until the next frame, and Textual fails on its place. What
        is dragged gets them. Drop keys that come back from a screen when the last one is gone: Textual fails on them,
        too."""
        if isinstance(event, events.Key) and not self.screen_stack:
            return
        comes = isinstance(event, events.MouseEvent) and not event.is_forwarded and self.mouse_captured is None
        if isinstance(event, events.MouseEvent) and comes and self._is_gone_at(event.x, event.y):
            return
        await super().on_event(event)

    def _is_gone_at(self, x: int, y: int) -> bool:
        """Return whether a widget is drawn there that was removed."""
        try:
            return not self.get_widget_at(x, y)[0].is_attached
        except (NoWidget, ScreenStackError):
            return False

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
        if instead:
            self.switch_screen(main)
        else:
            self.push_screen(main)

    def _offer_recent(self) -> None:
        captures = recent_captures()

        def chosen(number: int | None) -> None:
            if number is None or not self.open_files(captures[number]):
                self.exit()

        choices = [Choice(*_called(paths)) for paths in captures]
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
        main.begin_with(message.filter, message.time_ns)
        self._replace(main)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return the palette's commands in groups: an action of this screen once, with all its keys; themes; recent
        filters and captures; columns."""
        yield from sorted(self._actions(screen), key=lambda command: place(command.title.partition(": ")[0]))
        yield SystemCommand(f"{PROGRAM}: Theme", "Choose the colors of the program", self.action_change_theme)
        if isinstance(screen, MainScreen):
            yield from self._choices(screen)

    def _actions(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """Yield a command for each action with a key that is not a movement in a pane."""
        actions: dict[tuple[DOMNode, str], list[ActiveBinding]] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.description and active.enabled and binding.id is not None and not binding.system:
                actions.setdefault((active.node, binding.action), []).append(active)
        for (node, action), found in actions.items():
            keys = " ".join(dict.fromkeys(self.get_key_display(each.binding) for each in found))
            title = f"{feature_of(found[0])}: {found[0].binding.description} ({keys})"
            yield SystemCommand(title, found[0].tooltip, partial(self.run_action, action, node))

    def _choices(self, screen: MainScreen) -> Iterator[SystemCommand]:
        for text in recent(FILTERS)[:OFFERED]:
            again = partial(screen.post_message, ApplyFilter(text))
            yield SystemCommand(f"Filter: {text}", "Apply this filter again", again)
        for column in all_columns():
            toggle = partial(screen.toggle_column, column.name)
            yield SystemCommand(f"Column: {column.name}", "Show or hide this column", toggle)
        for paths in recent_captures()[:OFFERED]:
            name, folder = _called(paths)
            yield SystemCommand(f"Open: {name}", f"Open this capture in {folder}", partial(self.open_files, paths))

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
        self.push_screen(DetailScreen(message.capture, message.place, message.filter))

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Commands):
            self.push_screen(Commands(id="--command-palette"))

    def action_help(self) -> None:
        self.push_screen(HelpScreen(keys_of(self.screen)))

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return the screen as SVG that converters draw as it is."""
        return one_text_a_word(super().export_screenshot(title=title, simplify=simplify))

    def action_picture(self) -> None:
        """Save the screen as SVG in the current folder."""
        try:
            path = Path(self.save_screenshot())
        except OSError as error:
            words = clean(f"screenshot not saved: {error.strerror or error}")
            self.notify(words, severity="error", markup=False)
        else:
            self.notify(f"saved {path.name}", markup=False)


def run(
    paths: Sequence[str],
    response_to: tuple[int, int] | None = None,
    *,
    ports: Set[int] = frozenset(),
    decode_as: Sequence[DecodeAs] = (),
    topics: Mapping[str, str] | None = None,
    key_logs: Sequence[str] = (),
    show_secrets: bool = False,
    resolves: bool = False,
    value_opener: "ValueOpener | None" = None,
) -> int:
    """Open captures on the screen, or offer recent ones; return the exit code. `value_opener` opens keys and values of
    records. Raises `capture.CaptureError` before the
    terminal is taken, or after it is given back if a pipe turned out to be no capture."""
    _take_terminal()

    given = (*of_ports(ports), *decode_as)

    def opener(paths: Sequence[str], /, *, decode_as: Sequence[DecodeAs] = given) -> Capture:
        return Capture(
            paths, response_to=response_to, decode_as=decode_as, topics=topics, key_logs=key_logs,
            show_secrets=show_secrets, resolves=resolves, opener=value_opener,
        )  # fmt: skip

    with ExitStack() as opened:
        main = MainScreen(opened.enter_context(opener(paths))) if paths else None
        if paths:
            remember_capture(paths)
        app = KDissectApp(main, opener)
        app.run()
        if app.error is not None:
            raise app.error
        return app.return_code or 0


def run_diff(a: DiffSide, b: DiffSide, connections: ManualMatches = ()) -> int:
    """Show two sides next to each other; return the exit code: 0 if they are the same, 1 if they differ, 2 if there is
    nothing to compare, 130 if the user quit before the comparison was done. Raises `capture.CaptureError` if a pipe
    turned out to be no capture."""
    _take_terminal()
    screen = DiffScreen(a, b, connections)
    app = KDissectApp(screen)
    app.run()
    if app.error is not None:
        raise app.error
    found = screen.comparison
    if found is None:
        return LEFT
    return 2 if not (found.a.exchanges and found.b.exchanges) else 0 if found.is_same else 1


def run_matrix(sides: Sequence[DiffSide]) -> int:
    """Show what several sides do, next to each other; return the exit code: 0 if they do the same, 1 if not, 130 if the
    user quit before. Raises `capture.CaptureError` if a pipe turned out to be no capture."""
    _take_terminal()
    screen = MatrixScreen(sides)
    app = KDissectApp(screen)
    app.run()
    if app.error is not None:
        raise app.error
    return LEFT if screen.matrix is None else 0 if screen.matrix.is_same else 1


def run_live(capture: Capture, recording: Recording, wanted: CaptureSettings, begin: Begin) -> None:
    """Show a live capture, and those that the user starts after it, until the user quits."""
    _take_terminal()
    KDissectApp(LiveScreen(capture, recording, wanted, begin)).run()


def _take_terminal() -> None:
    """End with the terminal. One without colors gets none: nobody knows what it would make of them."""
    end_with_terminal()
    try:
        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
        colors = curses.tigetnum("colors")
    except (curses.error, OSError):  # nothing is known of the terminal
        return
    if colors < 2:
        os.environ["NO_COLOR"] = "1"


def _called(paths: Sequence[str]) -> tuple[str, str]:
    """Return the names of a capture's files, and the folder of the first one; clean."""
    names = ", ".join(Path(path).name for path in paths[:NAMED])
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return clean(names + more), clean(str(Path(paths[0]).parent))


def _binding_ids(kind: type[DOMNode] = DOMNode) -> Iterator[str]:
    """Yield the ids of all key bindings."""
    own = kind.__dict__.get("BINDINGS", ())
    yield from (each.id for each in own if isinstance(each, Binding) and each.id is not None)
    for each in kind.__subclasses__():
        yield from _binding_ids(each)
