"""What the colours of the list tell, and the line that says which is which."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static

from tui.messages import SavePreference
from tui.row_colors import ColorBy
from tui.screens.core_screen import CoreScreen
from tui.settings import COLOURS


class ColorsFeature(CoreScreen):
    """By severity, API, latency or connection."""

    FEATURE = "List"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "colours", "Colours", show=False, tooltip="What colours tell: severity, API, latency, connection",
                id="main.colours"),
    ]  # fmt: skip

    def on_mount(self) -> None:
        if not self.app.is_running:
            return
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw_colours())
        self._draw_colours()

    def action_colours(self) -> None:
        """The next way."""
        self.appearance.color_by = self.appearance.color_by.next
        self._draw_colours()
        self.post_message(SavePreference(COLOURS, self.appearance.color_by.value))
        self.notify(f"colours tell: {self.appearance.color_by.value}", timeout=2)

    def _draw_colours(self) -> None:
        """The legend, and the rows anew."""
        color_by = self.appearance.color_by
        legend = Text(f"{color_by.value}:")
        for words, hue in color_by.legend():
            legend.append("  ").append(f"■{words}", "" if hue is None else self._list.hue_style(hue))
        line = self.query_one("#legend", Static)
        line.update(legend)
        line.set_class(color_by is not ColorBy.SEVERITY, "shown")
        self._list.rearranged()
