"""Features that need the whole capture wait until it is read."""

from tui.screens.core_screen import CoreScreen


class NeedsWholeCapture(CoreScreen):
    """Notifies a user who is too early."""

    def is_read(self) -> bool:
        """Return whether the capture is read and has rows."""
        if not self._done:
            self.notify("still reading the capture: this needs all of it", timeout=3)
        elif not len(self.capture):
            self.notify("there are no exchanges", timeout=2)
        return self._done and len(self.capture) > 0

    @property
    def waits_for_end(self) -> bool:
        """Whether rows get other numbers when the capture is read, which it is not yet."""
        return self.RENUMBERS_ROWS and not self._done

    def has_rows(self) -> bool:
        """Return whether there are rows whose numbers stay: live they do, else only when all is read."""
        if self._done or self.RENUMBERS_ROWS:
            return self.is_read()
        if not len(self.capture):
            self.notify("there are no exchanges yet", timeout=2)
        return len(self.capture) > 0
