"""Comparisons: with another capture, of two exchanges, of two clients or connections of one capture. What is compared
and how is the engine's of `kdissect diff`; here is what of the list is compared.

A capture that still grows is compared up to its last row of that moment.
"""

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding

from dissector.analysis.diff.side import RowSide
from tui.command_line import LineCommand, file_completions
from tui.feature import OVERALL, ScreenFeature
from tui.messages import CompareWith
from tui.screens.compare_dialog import CompareDialog, PeersDialog, offered
from tui.screens.core_screen import CoreScreen
from tui.screens.diff_screen import DiffScreen


class CompareFeature(ScreenFeature[CoreScreen]):
    """d compares the capture with another one, p its clients, = marked exchanges."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("d", "compare", "Diff", tooltip="Compare with another capture", id="main.diff"),
        Binding("p", "compare_client", "Compare client", show=False, id="main.compare_client",
                tooltip="Compare this client or connection with another one of this capture"),
        Binding("equals_sign", "compare_marked", "Compare marked", show=False, key_display="=",
                tooltip="Compare two marked exchanges side by side, or a marked one with this one",
                id="main.compare_marked"),
    ]  # fmt: skip

    def commands(self) -> Iterator[LineCommand]:
        yield LineCommand("diff", "compare with another capture", self._diff_command, "FILE", file_completions)

    def _diff_command(self, name: str) -> None:
        if not self.screen.is_read():
            return
        if name:
            self._compare(name)
        else:
            self.screen.call_later(self.action_compare)

    def action_compare(self) -> None:
        if self.screen.capture.is_read:
            self.app.push_screen(CompareDialog(offered(self.screen.capture.names[0])), self._compare)
        else:
            self.notify("still reading the capture", timeout=2)

    def _compare(self, path: str | None) -> None:
        if path is not None:
            self.screen.post_message(CompareWith(self.screen.capture, path))

    @property
    def _stop(self) -> int | None:
        """The row at which a comparison stops now; None if there will be no more."""
        return None if self.screen.capture.is_read else len(self.screen.capture)

    def action_compare_client(self) -> None:
        if not self.screen.has_rows() or not len(self.screen.view):
            return
        if self.screen.capture.exchange(self.screen.number).is_stored:
            self.notify("entries of Kafka's own files have no client", timeout=3)
            return
        dialog = PeersDialog(self.screen.capture, self.screen.number, self._stop)

        def chosen(number: str | None) -> None:
            if number is not None:
                self.app.push_screen(DiffScreen(*dialog.sides(number)))

        self.app.push_screen(dialog, chosen)

    def action_compare_marked(self) -> None:
        if not self.screen.has_rows():
            return
        rows = self._marked_rows()
        mark, compare = (self.screen.key_of(action) for action in ("mark", "compare_marked"))
        if len(rows) == 2:
            words = self._not_comparable(rows[0], rows[1])
        elif rows:
            words = f"{len(rows):,} exchanges are marked: {compare} compares two; {mark} removes a mark"
        else:
            words = f"mark an exchange ({mark}): {compare} compares it with another marked one, or with this one"
        if words:
            self.notify(words, timeout=5)
            return
        capture = self.screen.capture
        sides = [RowSide(capture, self._label(row), stop=len(capture), row=row) for row in rows]
        self.app.push_screen(DiffScreen(sides[0], sides[1], pair=(rows[0], rows[1])))

    def _marked_rows(self) -> list[int]:
        """Return the marked rows, ascending; of more than two those that the list shows, if these are two; one alone
        first, and the row under the cursor."""
        count, view, here = len(self.screen.capture), self.screen.view, self.screen.number
        marked = sorted(row for row in self.screen.appearance.marks.marked if row < count)
        shown = [row for row in marked if view.position(row) is not None]
        if len(marked) > 2 and len(shown) == 2:
            return shown
        if len(marked) == 1 and len(view) and here != marked[0]:
            return [*marked, here]
        return [] if len(marked) == 1 else marked

    def _not_comparable(self, a: int, b: int) -> str:
        """Return why two rows have nothing to compare; empty if they have."""
        apis = []
        for row in (a, b):
            exchange = self.screen.capture.exchange(row)
            if exchange.row.kind != "exchange":
                return f"row {row + 1:,} is not an exchange: only exchanges of one API can be compared"
            if exchange.request is None:
                return f"row {row + 1:,} is a response without its request: only exchanges of one API can be compared"
            apis.append(exchange.row.api)
        if apis[0] != apis[1]:
            return f"row {a + 1:,} is {apis[0]}, row {b + 1:,} {apis[1]}: only exchanges of one API can be compared"
        return ""

    def _label(self, row: int) -> str:
        found = self.screen.capture.exchange(row).row
        return f"{row + 1} {found.api} v{found.version}, C{found.connection}"
