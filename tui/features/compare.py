"""Compares this capture with another: asks for it, and opens the diff screen."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.key_groups import OVERALL
from tui.messages import CompareWith
from tui.screens.compare_dialog import CompareDialog, offered
from tui.screens.core_screen import CoreScreen


class CompareFeature(CoreScreen):
    """Compares the capture with another one."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "compare", "Diff", tooltip="Compare with another capture", id="main.diff"),
    ]

    def action_compare(self) -> None:
        if self.capture.is_read:
            self.app.push_screen(CompareDialog(offered(self.capture.names[0])), self._compare)
        else:
            self.notify("still reading the capture", timeout=2)

    def _compare(self, path: str | None) -> None:
        if path is not None:
            self.post_message(CompareWith(self.capture, path))
