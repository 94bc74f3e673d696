"""Opens the sequence diagram."""

from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.core.arrays import Int64
from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import OVERALL
from tui.messages import GoTo
from tui.screens.sequence_screen import SequenceScreen


class SequenceFeature(NeedsWholeCapture):
    """D opens the sequence diagram."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "sequence", "Sequence", show=False, tooltip="Sequence diagram: messages as arrows between lanes",
                id="main.sequence"),
    ]  # fmt: skip

    def action_sequence(self) -> None:
        if self.has_rows() and len(self.view):
            self.app.push_screen(SequenceScreen(self.capture, self._rows_shown, self.number), self._sequence_closed)

    def _rows_shown(self) -> Int64:
        return np.sort(self.view.rows) if self.view.is_filtered else np.arange(len(self.capture))

    def _sequence_closed(self, number: int | None) -> None:
        if number is not None:
            self.post_message(GoTo(number))
