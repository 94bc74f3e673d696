"""The footer: the keys of the screen and of the focused pane, the most useful first, as many as fit: none is cut."""

from typing import Any

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from tui.feature import FIRST

_SPACES = 3
"""Cells around a key and behind its words."""


class KeyFooter(Footer):
    """A footer that is composed again only if its keys, or its width, changed.

    Textual composes its footer after every change of focus, and five times while a screen opens: mounting and styling a
    dozen widgets each time was a sixth of the time that the main screen takes to open.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._composed: list[tuple[Any, ...]] = []
        """The width; bindings that are shown now, each with its key and whether it is enabled."""

    def compose(self) -> ComposeResult:
        room, ids = self.app.size.width, self._ids()
        for key in sorted(super().compose(), key=lambda key: _rank(ids.get(getattr(key, "action", "")))):
            room -= cell_len(getattr(key, "key_display", "")) + cell_len(getattr(key, "description", "")) + _SPACES
            if room < 0:
                return
            if isinstance(key, FooterKey):
                key.set_reactive(FooterKey.compact, False)  # as ours is: else it is styled as compact, and then as not
            yield key

    def _ids(self) -> dict[str, str | None]:
        return {binding.action: binding.id for _, binding, _, _ in self.screen.active_bindings.values()}

    async def recompose(self) -> None:
        if not self.is_attached:
            return
        shown: list[tuple[Any, ...]] = [
            (binding, self.app.get_key_display(binding), enabled, tooltip)
            for _, binding, enabled, tooltip in self.screen.active_bindings.values()
            if binding.show
        ]
        shown.append((self.app.size.width,))
        if shown != self._composed:
            self._composed = shown
            await super().recompose()

    def on_resize(self) -> None:
        self.call_after_refresh(self.recompose)


def _rank(binding_id: str | None) -> int:
    """Return the place of a key among the others: the help, then the keys that matter."""
    if binding_id is not None and binding_id.endswith(".help"):
        return -1
    return FIRST.index(binding_id) if binding_id in FIRST else len(FIRST)
