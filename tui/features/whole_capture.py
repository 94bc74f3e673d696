"""What can only be told of a whole capture waits until it is read."""

from tui.screens.core_screen import CoreScreen


class NeedsWholeCapture(CoreScreen):
    """Says so to who asks too early."""

    def is_read(self) -> bool:
        """Whether all is read, and there is something."""
        if not self._done:
            self.notify("still reading: this looks at all exchanges", timeout=3)
        elif not len(self.capture):
            self.notify("there are no exchanges", timeout=2)
        return self._done and len(self.capture) > 0

    def has_rows(self) -> bool:
        """Whether there is something, which keeps its place: what is live does, what is read only at its end."""
        if self._done or self.RENUMBERS_ROWS:
            return self.is_read()
        if not len(self.capture):
            self.notify("there are no exchanges yet", timeout=2)
        return len(self.capture) > 0
