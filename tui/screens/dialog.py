"""Screens that return a result."""

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType


class ResultScreen(Screen[ScreenResultType]):
    """Invariant: it returns one result. A second click on a choice arrives before the first one has removed the screen,
    and `dismiss` removes whatever is on top."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class Dialog(ModalScreen[ScreenResultType], ResultScreen[ScreenResultType]):
    """One that leaves what is below visible. Textual takes the styles of the first base only."""
