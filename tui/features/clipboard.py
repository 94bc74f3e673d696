"""Copies the selected field or row to the clipboard of the user's terminal (OSC 52: over ssh too)."""

from typing import ClassVar

from textual.binding import Binding

from dissector.core.text import clean, cut
from tui.clipboard_formats import CLIPBOARD_FORMATS, ClipboardFormat, clipboard_text
from tui.feature import KEEP, ScreenFeature
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu

SAMPLE = 40
"""Characters of the copied text that the notification shows."""


class ClipboardFeature(ScreenFeature[CoreScreen]):
    """y, then a letter for the format."""

    GROUP = KEEP

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("y", "copy", "Copy", show=False, tooltip="Copy the field: path, value, hex, JSON, …", id="main.copy"),
    ]

    def action_copy(self) -> None:
        """Ask for the format."""

        def copy(chosen: int | None) -> None:
            if chosen is not None:
                self._copy(CLIPBOARD_FORMATS[chosen])

        self.app.push_screen(Menu("Copy", [Choice(form.words, key=form.key) for form in CLIPBOARD_FORMATS]), copy)

    def _copy(self, form: ClipboardFormat) -> None:
        copied = clipboard_text(form, self.screen.model)
        if copied is None:
            self.notify(f"no {form.words} here: select a field", timeout=3)
            return
        self.app.copy_to_clipboard(copied.text)
        shown = cut(clean(copied.text), SAMPLE)
        left_out = copied.size - len(copied.text)
        size = f", the first {len(copied.text):,} of {copied.size:,} characters" if left_out else ""
        self.notify(f"copied the {form.words}{size}: {shown}", timeout=5 if left_out else 3)
