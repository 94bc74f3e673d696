"""Screens over another one that give what was chosen on them, and go."""

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType


class ResultScreen(Screen[ScreenResultType]):
    """Invariant: it answers once. A second click on a choice comes before the first one has taken the screen away, and
    `dismiss` takes away what is on top, whose it ever is."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class Dialog(ModalScreen[ScreenResultType], ResultScreen[ScreenResultType]):
    """One that leaves what is below in sight. Textual takes styles of the first base alone."""
