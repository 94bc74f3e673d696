"""Colors of the list, and their legend."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static

from tui.key_groups import LIST
from tui.messages import SavePreference
from tui.row_colors import ColorBy
from tui.screens.core_screen import CoreScreen
from tui.settings import COLORS


class ColorsFeature(CoreScreen):
    """By severity, API, latency or connection."""

    FEATURE = LIST

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "colors", "Colors", show=False, tooltip="Color rows by severity, API, latency or connection",
                id="main.colors"),
    ]  # fmt: skip

    def on_mount(self) -> None:
        if not self.app.is_running:
            return
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw_colors())
        self._draw_colors()

    def action_colors(self) -> None:
        """Switch to the next one."""
        self.appearance.color_by = self.appearance.color_by.next
        self._draw_colors()
        self.post_message(SavePreference(COLORS, self.appearance.color_by.value))
        self.notify(f"rows colored by {self.appearance.color_by.value}", timeout=2)

    def _draw_colors(self) -> None:
        """Draw the legend, and all rows again."""
        color_by = self.appearance.color_by
        legend = Text(f"{color_by.value}:")
        for words, hue in color_by.legend():
            legend.append(" ").append(f"■{words}", "" if hue is None else self._list.hue_style(hue))
        line = self.query_one("#legend", Static)
        line.update(legend)
        line.set_class(color_by is not ColorBy.SEVERITY, "shown")
        self._list.update_rows()
