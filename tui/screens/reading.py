"""Long messages: their bytes are shown at once, their fields when they have been read, beside the screen.

Who was on the way to a field arrives then, unless escape was pressed meanwhile."""

import threading

from textual import work
from textual.worker import Worker, get_current_worker

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from tui.garbage import no_collections, set_aside, take_back
from tui.model import Look
from tui.screens.core import CoreScreen
from tui.telling import tell


class Reading(CoreScreen):
    """One message at a time. Who has gone on before it is begun does not have it read at all."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self._reading = threading.Lock()

    def _draw_message(self) -> None:
        super()._draw_message()
        if self.model.unread is not None:
            self._read(self.model.unread)

    @work(thread=True, group="read")
    def _read(self, message: ExchangeMessage) -> None:
        worker = get_current_worker()
        with self._reading:
            if worker.is_cancelled or self.model.unread is not message:
                return
            take_back()  # what was shown before is gone
            with no_collections():
                look = Look(message)
                set_aside()
        if not worker.is_cancelled:
            tell(self, self._take, worker, look)

    def _take(self, worker: Worker[None], look: Look) -> None:
        if not worker.is_cancelled and self.model.unread is look.message:
            self.model.take(look)
            self._fields.show(look)
            self._draw_titles()
            arrive, self._awaiting = self._awaiting, None
            self._draw_inspector()
            if arrive is not None:
                arrive()

    def stop(self) -> bool:
        """Stay where the cursor is, whatever field it was to go to."""
        if self._awaiting is None:
            return super().stop()
        self._awaiting = None
        self._draw_inspector()
        self.notify("no longer on the way to a field", timeout=2)
        return True
