"""The time format of the list."""

from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from tui.key_groups import LIST
from tui.messages import SavePreference
from tui.screens.core_screen import CoreScreen
from tui.settings import TIME
from tui.time_format import TimeFormat, date_text


class TimesFeature(CoreScreen):
    """Cycles through formats; sets a row that times count from."""

    FEATURE = LIST

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "t", "time_format", "Time format", show=False, tooltip="Cycle the time format",
            id="main.time",
        ),
        Binding(
            "T", "time_reference", "Time reference", show=False,
            tooltip="Count times from this row; again: from the start", id="main.time_reference",
        ),
    ]  # fmt: skip

    def action_time_format(self) -> None:
        """Switch to the next format; the one that needs a reference is skipped without one."""
        form = self.appearance.time.next
        if form is TimeFormat.SINCE_REFERENCE and self.appearance.reference is None:
            form = form.next
        self._tell_time(form)

    def action_time_reference(self) -> None:
        if not len(self.view):
            return
        same = self.appearance.reference == self.number
        self.appearance.reference = None if same else self.number
        self._tell_time(TimeFormat.START if same else TimeFormat.SINCE_REFERENCE)

    def _tell_time(self, form: TimeFormat) -> None:
        self.appearance.time = form
        self._list.update_rows()
        # a reference is a row of this capture: not for the next one
        self.post_message(SavePreference(TIME, None if form is TimeFormat.SINCE_REFERENCE else form.value))
        date = date_text(self.capture.start_ns, form)
        self.notify(f"{form.words}{f', from {date}' if date else ''}", markup=False, timeout=2)

    def _rows_renumbered(self) -> None:
        super()._rows_renumbered()
        if self.appearance.reference is not None:
            self.appearance.reference = int(self.capture.rows.after_sort(np.array([self.appearance.reference]))[0])
