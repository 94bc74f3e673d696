"""Long messages: their bytes are shown at once, their fields when they have been read, beside the screen.

Who was on the way to a field arrives then, unless escape was pressed meanwhile."""

import threading

from textual import work
from textual.worker import Worker, get_current_worker

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from tui.exchange_model import TracedMessage
from tui.garbage_collection import freeze_objects, gc_paused, unfreeze_objects
from tui.screens.core_screen import CoreScreen
from tui.ui_thread import call_on_ui


class LongMessagesFeature(CoreScreen):
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
            unfreeze_objects()  # what was shown before is gone
            with gc_paused():
                look = TracedMessage(message)
                freeze_objects()
        if not worker.is_cancelled:
            call_on_ui(self, self._take, worker, look)

    def _take(self, worker: Worker[None], look: TracedMessage) -> None:
        if not worker.is_cancelled and self.model.unread is look.message:
            self.model.take(look)
            self._fields.show(look)
            self._draw_titles()
            arrive, self._awaiting = self._awaiting, None
            self._draw_inspector()
            if arrive is not None:
                arrive()

    def cancel_jump(self) -> bool:
        """Stay where the cursor is instead of jumping to a field once the message is decoded."""
        if self._awaiting is None:
            return False
        self._awaiting = None
        self._draw_inspector()
        self.notify("no longer on the way to a field", timeout=2)
        return True
