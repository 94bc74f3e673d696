"""Long messages: their bytes are shown at once, their fields when they are traced, in a thread.

A jump to a field of such a message arrives then, unless Escape is pressed meanwhile.
"""

import threading
from collections.abc import Callable
from functools import partial

from textual.worker import get_current_worker

from dissector.exchange.model import ExchangeMessage
from dissector.tls.record_parts import TlsRecord
from tui.exchange_model import TracedMessage
from tui.feature import ScreenFeature, work
from tui.screens.core_screen import CoreScreen
from tui.threads import call_on_ui, freeze_objects, gc_paused, unfreeze_objects


class LongMessagesFeature(ScreenFeature[CoreScreen]):
    """Traces one message at a time. A message that is no longer shown when its turn comes is not traced at all."""

    def __init__(self, screen: CoreScreen) -> None:
        super().__init__(screen)
        self._tracing = threading.Lock()

    def message_drawn(self) -> None:
        model = self.screen.model
        if model.untraced is not None and model.number is not None:
            frames, of_client = self.screen.capture.frames, model.side == "request"
            self._trace(model.untraced, partial(frames.tls_records, model.number, of_client=of_client))

    @work(group="read", thread=True)
    def _trace(self, message: ExchangeMessage, records: Callable[[], list[TlsRecord]]) -> None:
        worker = get_current_worker()
        with self._tracing:
            if worker.is_cancelled or self.screen.model.untraced is not message:
                return
            unfreeze_objects()  # what was shown before is gone
            with gc_paused():
                traced = TracedMessage(message, records())
                freeze_objects()
        call_on_ui(self.screen, self._take, traced)

    def _take(self, traced: TracedMessage) -> None:
        if self.screen.model.untraced is traced.message:
            self.screen.model.take(traced)
            self.screen.field_tree.show(traced)
            self.screen.draw_pane_titles()
            arrive, self.screen.after_tracing = self.screen.after_tracing, None
            self.screen.draw_inspector()
            if arrive is not None:
                arrive()

    def cancel_jump(self) -> bool:
        """Cancel the jump to a field of a message that is being traced."""
        if self.screen.after_tracing is None:
            return False
        self.screen.after_tracing = None
        self.screen.draw_inspector()
        self.notify("canceled the jump to the field", timeout=2)
        return True
