"""Matches by hand: two exchanges that the comparison did not pair, or the sides swapped. Each is compared again."""

from typing import ClassVar

from textual.binding import Binding

from tui.diff_labels import NAMES
from tui.diff_model import SIDES, row_of
from tui.feature import ScreenFeature
from tui.screens.diff_core_screen import DiffCoreScreen


class DiffMatchingFeature(ScreenFeature[DiffCoreScreen]):
    """Matches exchanges by hand."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("space", "match", "Match", tooltip="Mark an exchange, then match it with one on the other side",
                id="diff.match"),
        Binding("s", "swap", "Swap", show=False, tooltip="Swap A and B", id="diff.swap"),
    ]  # fmt: skip

    def action_match(self) -> None:
        """Mark a row, match it with one of the other side, or undo a match."""
        pair, model = self.screen.pairs.pair, self.screen.model
        if self.screen.is_exact:
            self.notify("these two are already matched", timeout=2)
            return
        if pair is None or model is None or not self.screen.shows_pairs:
            self.notify("match exchanges in the list of pairs (v)", timeout=3)
            return
        if (pair.a, pair.b) in self.screen.matched:
            self._match_anew(tuple(rows for rows in self.screen.matched if rows != (pair.a, pair.b)))
            return
        marked = self.screen.pairs.marked
        if marked is None:
            side = 0 if pair.a is not None else 1
            row = row_of(pair, side)
            assert row is not None
            self._mark(
                (side, row),
                f"{NAMES[side]} {row + 1} marked: press space on an exchange of {NAMES[1 - side]} to match it",
            )
            return
        other = 1 - marked[0]
        row = row_of(pair, other)
        if row_of(pair, marked[0]) == marked[1]:
            self._mark(None, "mark removed")
        elif row is None:
            self.notify(f"{NAMES[other]} has no exchange here", timeout=2)
        elif (apis := [model.api(*each) for each in (marked, (other, row))])[0] != apis[1]:
            self.notify("exchanges of different APIs can't be matched", timeout=3)
        else:
            found = (marked[1], row) if other else (row, marked[1])
            kept = (rows for rows in self.screen.matched if not any(rows[side] == found[side] for side in SIDES))
            self._match_anew((*kept, found))

    def _mark(self, marked: tuple[int, int] | None, words: str) -> None:
        self.screen.pairs.marked = marked
        self.screen.pairs.redraw()
        self.notify(words, timeout=4)

    def _match_anew(self, rows: tuple[tuple[int, int], ...]) -> None:
        self.screen.matched = rows
        self.screen.pairs.marked = None
        self.screen.compare()

    def action_swap(self) -> None:
        """Swap A and B."""
        self.screen.ends = (self.screen.ends[1], self.screen.ends[0])
        self.screen.matched = tuple((b, a) for a, b in self.screen.matched)
        self.screen.connections = tuple((b, a) for a, b in self.screen.connections)
        self.screen.compare()

    def unmark(self) -> bool:
        """Unmark the exchange that waits for its match."""
        marked = self.screen.pairs.marked is not None
        if marked:
            self._mark(None, "mark removed")
        return marked
