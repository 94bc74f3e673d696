"""What the colours of the list tell, and the line that says which is which."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static

from tui.colouring import Colouring
from tui.messages import Keep
from tui.screens.core import CoreScreen
from tui.settings import COLOURS


class Coloured(CoreScreen):
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
        self.appearance.colouring = self.appearance.colouring.next
        self._draw_colours()
        self.post_message(Keep(COLOURS, self.appearance.colouring.value))
        self.notify(f"colours tell: {self.appearance.colouring.value}", timeout=2)

    def _draw_colours(self) -> None:
        """The legend, and the rows anew."""
        colouring = self.appearance.colouring
        legend = Text(f"{colouring.value}:")
        for words, hue in colouring.legend():
            legend.append("  ").append(f"■{words}", "" if hue is None else self._list.hue_style(hue))
        line = self.query_one("#legend", Static)
        line.update(legend)
        line.set_class(colouring is not Colouring.SEVERITY, "shown")
        self._list.rearranged()
