"""The sequence diagram of the exchanges in the list: lanes as columns, time downwards."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from dissector.analysis.sequence_diagram import SequenceDiagram, render_mermaid, render_svg, sequence_diagram
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.files import private
from dissector.core.text import clean, counted, os_reason
from tui.screens.dialog import Choice, Menu
from tui.screens.snapshot_screen import SnapshotScreen
from tui.threads import call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.sequence_view import SequenceView

MOST_EXPORTED: Final = 500
"""Exchanges in an exported diagram: more can't be read."""
LEGEND: Final = "── request  ╌╌ response  ✕ error  ▏▎▍▌▋▊▉█ requests in flight, 1 to 8"
LATENCIES: Final = "  ▇ latency: one more cell is 4 times"
FORMS: Final = (
    ("mmd", render_mermaid, Choice("Mermaid", "a sequence diagram as text")),
    ("svg", render_svg, Choice("SVG", "a picture")),
)


class SequenceScreen(SnapshotScreen[int | None]):
    """Returns the row that was opened, from 0; None if none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,D", "dismiss", "Back", tooltip="Back to the exchanges", id="sequence.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="sequence.help"),
        Binding("x", "export", "Export", tooltip="Write Mermaid or SVG to the current folder", id="sequence.export"),
    ]

    def __init__(self, capture: Capture, rows: Callable[[], Int64], number: int) -> None:
        """`rows` returns the rows to show, ascending; `number` is where to begin."""
        super().__init__(capture)
        self._rows_now = rows
        self._rows = rows()
        self._number = number
        self._is_request = True

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield SequenceView(id="sequence")
        yield Static(id="pages", markup=False)
        yield KeyFooter()

    @property
    def _view(self) -> SequenceView:
        return self.query_one(SequenceView)

    def on_mount(self) -> None:
        self._view.focus()
        self.begin()

    def heading(self) -> Text:
        return Text("Sequence", "bold").append(f" · {counted(len(self._rows), 'row')}")

    def begin(self) -> None:
        diagram = self._view.diagram
        if diagram is not None and len(diagram):
            self._number = int(diagram.rows[self._view.cursor])
            self._is_request = bool(diagram.is_request[self._view.cursor])
        self._rows = self._rows_now()
        self.say("○ drawing")
        self._make()

    @work(thread=True, exclusive=True, group="make")
    def _make(self) -> None:
        call_on_ui(self, self._show, sequence_diagram(self._capture, self._rows))

    def _show(self, diagram: SequenceDiagram) -> None:
        if self.is_mounted:
            self._view.show(diagram, self._number, is_request=self._is_request)
            self.say(counted(len(diagram.lanes), "lane"))
            self._draw_legend()

    def _draw_legend(self) -> None:
        self.query_one("#pages", Static).update(LEGEND + (LATENCIES if self._view.has_latencies else ""))

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw_legend)  # the diagram has its width then

    def action_export(self) -> None:
        if self._view.diagram is not None and len(self._view.diagram):
            self.app.push_screen(Menu("Export as", [choice for _, _, choice in FORMS]), self._export)

    def _export(self, form: int | None) -> None:
        """Export all rows if a diagram can hold them, else those from the first on the screen on."""
        diagram = self._view.diagram
        if form is None or diagram is None:
            return
        rows = self._rows
        if len(rows) > MOST_EXPORTED:
            first = int(diagram.rows[self._view.shown.start])
            rows = rows[np.searchsorted(rows, first) :][:MOST_EXPORTED]
        ending, draw, _ = FORMS[form]
        path = _free(f"sequence-{int(rows[0]) + 1}-{int(rows[-1]) + 1}", ending)
        try:
            with open(path, "x", encoding="utf-8", opener=private) as file:
                file.write(draw(sequence_diagram(self._capture, rows)))
        except OSError as error:
            self.notify(clean(f"{path.name}: {os_reason(error)}"), markup=False, severity="error")
            return
        self.notify(f"saved {path.name}: {len(rows):,} of {counted(len(self._rows), 'row')}", markup=False)

    def on_sequence_view_message_opened(self, event: SequenceView.MessageOpened) -> None:
        self.dismiss(event.number)


def _free(name: str, ending: str) -> Path:
    """Return a path in the current folder that does not exist yet."""
    paths = (Path(f"{name}{'' if n == 1 else f'-{n}'}.{ending}") for n in range(1, 1_000_000))
    return next(path for path in paths if not path.exists())
