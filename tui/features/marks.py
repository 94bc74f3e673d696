"""Marks and comments on rows."""

from typing import ClassVar

import numpy as np
from textual.binding import Binding

from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.feature import KEEP, ScreenFeature
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Prompt


class MarksFeature(ScreenFeature[CoreScreen]):
    """Marks rows, goes to the next mark, shows marked rows only, comments rows."""

    GROUP = KEEP

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("m", "mark", "Mark", show=False, tooltip="Toggle mark", id="main.mark"),
        Binding("apostrophe", "next_mark", "Next mark", show=False, key_display="'", tooltip="Next marked exchange",
                id="main.next_mark"),
        Binding("M", "marked_only", "Marked only", show=False, tooltip="Show only marked exchanges; again: all",
                id="main.marked_only"),
        Binding("semicolon", "comment", "Comment", show=False, key_display=";", tooltip="Comment on the exchange",
                id="main.comment"),
    ]  # fmt: skip

    _only_marked = False

    def action_mark(self) -> None:
        if not len(self.screen.view):
            return
        try:
            self.screen.appearance.marks.toggle(self.screen.number)
        except OSError as error:
            self._not_kept(error)
        if self._only_marked:
            self.screen.view.mark(self._marked_rows())
            self.screen.draw_title()
        self.screen.exchange_list.update_rows()

    def action_next_mark(self) -> None:
        """Go to the next mark that is shown, the first one after the last."""
        marks, number = self.screen.appearance.marks, self.screen.number
        for _ in marks.marked:
            following = marks.next(number)
            if following is not None and self.screen.go_to(following):
                return
            number = number if following is None else following
        self.notify("no marked exchange is shown; m marks one", timeout=2)

    def action_marked_only(self) -> None:
        if not self._only_marked and not self.screen.appearance.marks.marked:
            self.notify("no exchange is marked; m marks one", timeout=2)
            return
        self._only_marked = not self._only_marked
        self.screen.view.mark(self._marked_rows() if self._only_marked else None)
        self.screen.exchange_list.update_rows()
        self.screen.draw_title()

    def _marked_rows(self) -> Int64:
        return np.array(sorted(self.screen.appearance.marks.marked), np.int64)

    def action_comment(self) -> None:
        if not len(self.screen.view):
            return
        number = self.screen.number

        def written(text: str | None) -> None:
            if text is None:
                return
            try:
                self.screen.appearance.marks.comment(number, text)
            except OSError as error:
                self._not_kept(error)
            self.screen.exchange_list.update_rows()

        before = self.screen.appearance.marks.comments.get(number, "")
        self.app.push_screen(Prompt(f"Comment on exchange {number + 1}", clean(before)), written)

    def _not_kept(self, error: OSError) -> None:
        words = f"marks and comments not saved: {error.strerror or error}"
        self.notify(clean(words), severity="warning", timeout=4)

    def rows_renumbered(self) -> None:
        self.screen.appearance.marks.renumber(self.screen.capture.rows.after_sort)

    def rows_added(self, *, done: bool) -> None:
        if done and self.screen.RENUMBERS_ROWS:
            try:
                self.screen.appearance.marks.keep(self.screen.capture.names, len(self.screen.capture))
            except OSError as error:
                self._not_kept(error)
            self.screen.exchange_list.update_rows()
