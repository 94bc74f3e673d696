"""Lists the differences that a comparison ignores."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.screens.diff_core_screen import DiffCoreScreen
from tui.screens.ignored_dialog import IgnoredDialog


class DiffIgnoredFeature(DiffCoreScreen):
    """i lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "i", "ignored", "Ignored", show=False, tooltip="List the differences that are ignored", id="diff.ignored"
        ),
    ]

    def action_ignored(self) -> None:
        if self.comparison is not None:
            self.app.push_screen(IgnoredDialog(self.comparison.ignored))
