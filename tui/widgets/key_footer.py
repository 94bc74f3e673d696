"""The footer: the keys of the screen and of the pane with the focus."""

from typing import Any

from textual.widgets import Footer


class KeyFooter(Footer):
    """A footer that is composed again only if its keys changed.

    Textual composes its footer after every change of focus, and five times while a screen opens: mounting and styling a
    dozen widgets each time was a sixth of the time that the main screen takes to open.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._composed: list[tuple[Any, ...]] = []
        """Bindings that are shown now, each with its key and whether it is enabled."""

    async def recompose(self) -> None:
        if not self.is_attached:
            return
        shown = [
            (binding, self.app.get_key_display(binding), enabled, tooltip)
            for _, binding, enabled, tooltip in self.screen.active_bindings.values()
            if binding.show
        ]
        if shown != self._composed:
            self._composed = shown
            await super().recompose()
