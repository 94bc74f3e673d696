"""Opens the IO graph of the rows in the list."""

from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.core.arrays import Int64
from tui.features.filter import FilterFeature
from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import OVERALL
from tui.screens.io_graph_screen import IoGraphScreen


class IoGraphFeature(FilterFeature, NeedsWholeCapture):
    """I opens the IO graph."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("I", "io_graph", "IO graph", show=False, id="main.io_graph",
                tooltip="IO graph: exchanges, bytes, latencies and errors over time; a span becomes a filter"),
    ]  # fmt: skip

    def action_io_graph(self) -> None:
        if self.has_rows() and len(self.view):
            self.app.push_screen(IoGraphScreen(self.capture, self._rows_drawn), self._graph_closed)

    def _rows_drawn(self) -> Int64:
        return np.sort(self.view.rows) if self.view.is_filtered else np.arange(len(self.capture))

    def _graph_closed(self, span: str | None) -> None:
        """Show the rows of a span, of those that the list shows."""
        if span:
            now = self._run.filter.text if self._run is not None else ""
            self.apply_filter(f"({now}) && {span}" if now else span)
