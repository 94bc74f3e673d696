"""Lists the differences that a comparison ignores."""

from typing import ClassVar

from textual.binding import Binding

from tui.feature import Feature
from tui.screens.diff_core_screen import DiffCoreScreen
from tui.screens.ignored_dialog import IgnoredDialog


class DiffIgnoredFeature(Feature[DiffCoreScreen]):
    """i lists them."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding(
            "i", "ignored", "Ignored", show=False, tooltip="List the differences that are ignored", id="diff.ignored"
        ),
    ]

    def action_ignored(self) -> None:
        if self.screen.comparison is not None:
            self.app.push_screen(IgnoredDialog(self.screen.comparison.ignored))
