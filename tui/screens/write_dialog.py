"""The dialog while a file is written: its size so far, and a key that stops it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.capture import CaptureError
from dissector.core.files import private, write_reason
from dissector.core.text import byte_size, clean
from tui.screens.dialog import Dialog
from tui.threads import Pace, call_on_ui

SECONDS: Final = 0.2
"""Between two reports of the size."""
Notify = Callable[[str], None]
Chunks = Callable[[Notify], Iterator[bytes]]
"""Yields the contents of the file, and reports messages for the user. Raises `CaptureError`."""


class WriteDialog(Dialog[str | None]):
    """Returns a message about the result; None if it was stopped.

    Invariants: an existing file is never overwritten, and an incomplete file is removed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Stop", tooltip="Stop writing, and remove the file", id="writing.stop"),
    ]

    def __init__(self, path: Path, pieces: Chunks) -> None:
        super().__init__()
        self._path = path
        self._pieces = pieces
        self._message: str | None = None
        self.is_written = False
        """Whether the file is there, whole."""

    def compose(self) -> ComposeResult:
        words = Static("writing", id="progress", markup=False)
        words.border_title = clean(self._path.name).replace("[", "\\[")
        yield words

    def on_mount(self) -> None:
        self._write()

    @work(thread=True)
    def _write(self) -> None:
        messages: list[str] = []
        try:
            pieces = self._pieces(messages.append)
            with open(self._path, "xb", opener=private) as file:
                try:
                    whole = self._copy(pieces, file.write)
                except BaseException:  # that the worker is stopped, too: it is raised again
                    self._path.unlink()
                    raise
                if not whole:
                    self._path.unlink()
                    return
                self.is_written = True
                messages.insert(0, f"wrote {self._path}, {byte_size(file.tell())}")
        except CaptureError as error:
            messages = [f"not written: {error}"]
        except (OSError, ValueError) as error:
            messages = [f"not written: {self._path}: {write_reason(str(self._path), error)}"]
        if not get_current_worker().is_cancelled:
            call_on_ui(self, self._end, clean("; ".join(messages)))

    def _end(self, message: str) -> None:
        self._message = message
        self.dismiss(message)  # does nothing if it was stopped at the last moment

    def on_screen_resume(self) -> None:
        """The screen that was in front at the end is gone."""
        if self._message is not None:
            self.dismiss(self._message)

    def _copy(self, pieces: Iterator[bytes], write: Callable[[bytes], int]) -> bool:
        """Write all chunks; return whether that was not stopped."""
        worker, pace, done = get_current_worker(), Pace(SECONDS, at_once=False), 0
        for piece in pieces:
            if worker.is_cancelled:
                return False
            done += write(piece)
            if pace.is_due():
                call_on_ui(self, self._draw, done)
        return True

    def _draw(self, done: int) -> None:
        if self.is_mounted:
            self.query_one("#progress", Static).update(f"{byte_size(done)} so far")
