"""A file being written, over the screen: how much there is so far, and a key that stops it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.capture import CaptureError
from dissector.core.text import clean, size
from tui.screens.dialog import Dialog
from tui.ui_thread import call_on_ui

SECONDS: Final = 0.2
"""Between two looks at how much there is."""
Notify = Callable[[str], None]
Chunks = Callable[[Notify], Iterator[bytes]]
"""What the file holds; it says what it has to say to whom it is given. Raises `CaptureError`."""


class WriteDialog(Dialog[str | None]):
    """Gives what is to be said of it at the end; None where it was stopped.

    Invariants: no file is written over, and none is left that is not whole."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Stop", tooltip="Stop writing; the file goes away", id="writing.stop"),
    ]

    def __init__(self, path: Path, pieces: Chunks) -> None:
        super().__init__()
        self._path = path
        self._pieces = pieces
        self._said: str | None = None

    def compose(self) -> ComposeResult:
        words = Static("working", id="written", markup=False)
        words.border_title = clean(self._path.name).replace("[", "\\[")
        yield words

    def on_mount(self) -> None:
        self._write()

    @work(thread=True)
    def _write(self) -> None:
        said: list[str] = []
        try:
            pieces = self._pieces(said.append)
            with self._path.open("xb") as file:
                try:
                    whole = self._copy(pieces, file.write)
                except BaseException:
                    self._path.unlink()
                    raise
                if not whole:
                    self._path.unlink()
                    return
                said.insert(0, f"wrote {self._path}, {size(file.tell())}B")
        except CaptureError as error:
            said = [f"not written: {error}"]
        except (OSError, ValueError) as error:
            said = [f"not written: {self._path}: {(getattr(error, 'strerror', None) or str(error)).lower()}"]
        if not get_current_worker().is_cancelled:
            call_on_ui(self, self._end, clean("; ".join(said)))

    def _end(self, said: str) -> None:
        self._said = said
        self.dismiss(said)  # nothing happens if somebody stopped it at the last moment

    def on_screen_resume(self) -> None:
        """What was over it at the end is gone."""
        if self._said is not None:
            self.dismiss(self._said)

    def _copy(self, pieces: Iterator[bytes], write: Callable[[bytes], int]) -> bool:
        """Whether all is written: nobody stopped it."""
        worker, told, done = get_current_worker(), time.monotonic(), 0
        for piece in pieces:
            if worker.is_cancelled:
                return False
            done += write(piece)
            if time.monotonic() - told > SECONDS:
                told = time.monotonic()
                call_on_ui(self, self._draw, done)
        return True

    def _draw(self, done: int) -> None:
        if self.is_mounted:
            self.query_one("#written", Static).update(f"{size(done)}B so far")
