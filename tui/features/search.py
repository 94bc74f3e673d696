"""Searches text, bytes or a field: in the message that is shown first, then in the exchanges after it."""

from functools import partial
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from dissector.analysis.search import SearchHit, SearchQuery
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.features.row_search import Go, RowSearch
from tui.location_history import Location
from tui.screens.search_dialog import SearchDialog


class Hits(NamedTuple):
    """All hits of the exchange that is shown, and which of them it is on."""

    number: int
    found: list[tuple[str, SearchHit]]
    """Side and place, those of the request first."""
    at: int


class SearchFeature(RowSearch):
    """ctrl+f, then n and N."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+f", "search", "Find", show=False,
                tooltip="Find text, bytes in hex, or a field", id="main.search"),
        Binding("n", "hit(1)", "Next hit", show=False, tooltip="The next place that has what was looked for",
                id="main.next_hit"),
        Binding("N", "hit(-1)", "Previous hit", show=False, tooltip="The place before that has what was looked for",
                id="main.previous_hit"),
    ]  # fmt: skip

    _needle: SearchQuery | None = None
    _hits: Hits | None = None

    def action_search(self) -> None:
        """Ask what to look for."""

        def begin(asked: SearchQuery | None) -> None:
            if asked is not None:
                self._needle, self._hits = asked, None
                self.action_hit(1)

        self.app.push_screen(SearchDialog(self._needle), begin)

    def action_hit(self, step: int) -> None:
        """The next hit, of this exchange or of another."""
        if self._needle is None:
            self.action_search()
            return
        hits, number = self._hits, self.model.number
        if number is None:
            return
        if hits is None or hits.number != number:
            self._seek_hit(self._needle, step, begins_here=True)
        elif 0 <= hits.at + step < len(hits.found):
            self._show_hit(self._needle, hits._replace(at=hits.at + step))
        else:
            self._seek_hit(self._needle, step, begins_here=False)

    def _seek_hit(self, sought: SearchQuery, step: int, *, begins_here: bool) -> None:
        """Look in the other exchanges, in the one that is shown before them if it `begins_here`: its hits from the
        side that is shown on."""
        number, side = self.number, self.model.side

        def here() -> Go | None:
            found = self._hits_of(sought, number)
            first = next((n for n, (its_side, _) in enumerate(found) if its_side == side), len(found))
            at = first if step > 0 else len(found) - 1
            return partial(self._show_hit, sought, Hits(number, found, at)) if 0 <= at < len(found) else None

        def find(rows: Int64) -> Go | None:
            there = sought.first(self.capture, rows)
            found = self._hits_of(sought, there) if there is not None else []
            if there is None or not found:
                return None
            return partial(self._show_hit, sought, Hits(there, found, 0 if step > 0 else len(found) - 1))

        self.seek(step, find, repr(sought.text), around=True, here=here if begins_here else None)

    def _hits_of(self, sought: SearchQuery, number: int) -> list[tuple[str, SearchHit]]:
        # An exchange of its own: the screen may be reading the one that is shown.
        [exchange] = self.capture.at(range(number, number + 1))
        return [(side, hit) for side, hits in sought.hits_of(exchange) for hit in hits]

    def _show_hit(self, sought: SearchQuery, hits: Hits) -> None:
        """Go to a hit."""
        self._hits = hits
        side, hit = hits.found[hits.at]
        self.go_to_place(Location(hits.number, side, hit.path), partial(self._light_up, sought, hits))

    def _light_up(self, sought: SearchQuery, hits: Hits) -> None:
        """Have all hits of the message that is shown lit up, the one it is about selected."""
        side, hit = hits.found[hits.at]
        others = [other for its_side, other in hits.found if its_side == side]
        self._fields.light_up({other.path for other in others})
        if sought.data:
            self.model.lit = [other[1:] for other in others if other.end - other.start == len(sought.data)]
        if hit.end > hit.start:
            self.model.selection = range(hit.start, hit.end)
        self._bytes.show_at(hit.start)
        self._draw_inspector(f"{hits.at + 1} of {len(hits.found):,} in this exchange: {clean(sought.text)}")
