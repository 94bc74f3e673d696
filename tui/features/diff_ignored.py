"""Lists what a comparison ignores."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.screens.diff_core_screen import DiffCoreScreen
from tui.screens.ignored_dialog import IgnoredDialog


class DiffIgnoredFeature(DiffCoreScreen):
    """Says what is ignored."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "ignored", "Ignored", show=False, tooltip="What is not taken for a difference", id="diff.ignored"),
    ]

    def action_ignored(self) -> None:
        if self.comparison is not None:
            self.app.push_screen(IgnoredDialog(self.comparison.ignored))
