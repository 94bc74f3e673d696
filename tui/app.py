"""The application: opens a capture on the main screen."""

from collections.abc import Iterable, Sequence, Set
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dissector.capture import CaptureError
from dissector.capture.live import Recording, Wanted
from dissector.capture_file import Capture
from tui.screens.core import CoreScreen
from tui.screens.help import HelpScreen, keys_of
from tui.screens.live import LiveScreen
from tui.screens.main import MainScreen
from tui.theme import CSS, KDISSECT, ON_DARK, ON_LIGHT, OURS


class KDissectApp(App[None]):
    """kdissect on a terminal."""

    CSS = CSS
    TITLE = "kdissect"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+s", "picture", "Picture", show=False, tooltip="Save a picture of the screen (SVG)", id="app.picture"
        )
    ]

    def __init__(self, main: MainScreen) -> None:
        super().__init__()
        self._main = main
        self.error: CaptureError | None = None
        """What ended it."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The hues, for themes that are not ours."""
        return ON_DARK if self.current_theme.dark else ON_LIGHT

    def on_mount(self) -> None:
        for theme in OURS:
            self.register_theme(theme)
        self.theme = KDISSECT.name
        self.push_screen(self._main)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What ctrl+p offers: Textual's own, and what has a key where the user is."""
        yield from super().get_system_commands(screen)
        for node, binding, enabled, tooltip in screen.active_bindings.values():
            if binding.description and enabled and not binding.system:
                run = partial(self.run_action, binding.action, node)
                yield SystemCommand(f"{binding.description} ({self.get_key_display(binding)})", tooltip, run)

    def on_core_screen_unreadable(self, message: CoreScreen.Unreadable) -> None:
        self.error = message.error
        self.exit(return_code=2)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(keys_of(self.screen)))

    def action_picture(self) -> None:
        """Save what the screen shows as SVG, in the current folder."""
        path = Path(self.save_screenshot())
        self.notify(f"saved {path.name}", markup=False)


def run(
    paths: Sequence[str],
    asked: tuple[int, int] | None = None,
    *,
    ports: Set[int] = frozenset(),
    show_secrets: bool = False,
) -> int:
    """Open captures on the screen; the exit code. Raises `capture.CaptureError` before the screen is taken, or after it
    is given back, where a pipe turned out to be no capture."""
    with Capture(paths, asked=asked, ports=ports, show_secrets=show_secrets) as capture:
        app = KDissectApp(MainScreen(capture))
        app.run()
        if app.error is not None:
            raise app.error
        return app.return_code or 0


def run_live(capture: Capture, recording: Recording, wanted: Wanted) -> None:
    """Show a capture that grows, until the user leaves."""
    KDissectApp(LiveScreen(capture, recording, wanted)).run()
