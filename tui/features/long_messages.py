"""Long messages: their bytes are shown at once, their fields when they are traced, in a thread.

A jump to a field of such a message arrives then, unless Escape is pressed meanwhile.
"""

import threading
from collections.abc import Callable
from functools import partial

from textual import work
from textual.worker import Worker, get_current_worker

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.tls.record_parts import TlsRecord
from tui.exchange_model import TracedMessage
from tui.garbage_collection import freeze_objects, gc_paused, unfreeze_objects
from tui.screens.core_screen import CoreScreen
from tui.ui_thread import call_on_ui


class LongMessagesFeature(CoreScreen):
    """Traces one message at a time. A message that is no longer shown when its turn comes is not traced at all."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self._tracing = threading.Lock()

    def _draw_message(self) -> None:
        super()._draw_message()
        if self.model.untraced is not None and self.model.number is not None:
            number, side = self.model.number, self.model.side
            self._trace(
                self.model.untraced, partial(self.capture.frames.tls_records, number, of_client=side == "request")
            )

    @work(thread=True, group="read")
    def _trace(self, message: ExchangeMessage, records: Callable[[], list[TlsRecord]]) -> None:
        worker = get_current_worker()
        with self._tracing:
            if worker.is_cancelled or self.model.untraced is not message:
                return
            unfreeze_objects()  # what was shown before is gone
            with gc_paused():
                traced = TracedMessage(message, records())
                freeze_objects()
        if not worker.is_cancelled:
            call_on_ui(self, self._take, worker, traced)

    def _take(self, worker: Worker[None], traced: TracedMessage) -> None:
        if not worker.is_cancelled and self.model.untraced is traced.message:
            self.model.take(traced)
            self._fields.show(traced)
            self._draw_titles()
            arrive, self._after_tracing = self._after_tracing, None
            self._draw_inspector()
            if arrive is not None:
                arrive()

    def cancel_jump(self) -> bool:
        """Cancel the jump to a field of a message that is being traced."""
        if self._after_tracing is None:
            return False
        self._after_tracing = None
        self._draw_inspector()
        self.notify("jump to the field cancelled", timeout=2)
        return True
