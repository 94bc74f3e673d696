"""Searches text, bytes or a field: in the message that is shown first, then in the exchanges after it."""

from functools import partial
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from dissector.analysis.search import SearchError, SearchHit, SearchKind, SearchQuery, search_query
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.feature import FIND, ScreenFeature
from tui.features.row_search import Go, RowSearchFeature
from tui.location_history import Location
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Dialog
from tui.theme import bold

_MEANINGS: Final = {
    SearchKind.TEXT: "names and values, decompressed",
    SearchKind.RAW: "bytes of frames as they are",
    SearchKind.HEX: "bytes of frames and of decompressed records",
    SearchKind.FIELD: "a name, or a path such as topics.name",
}
"""What each kind searches."""


class SearchDialog(Dialog[SearchQuery | None]):
    """Asks what to search."""

    DEFAULT_CSS = """
    SearchDialog { align: center bottom; }
    SearchDialog Vertical { height: auto; background: $panel; border: round $primary; padding: 0 1; }
    #query { border: none; background: $panel; padding: 0; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", id="search.close"),
        Binding("tab", "kind(1)", "Kind", priority=True, id="search.kind",
                tooltip="Readable text, raw text, hex or field"),
        Binding("shift+tab", "kind(-1)", "Kind", priority=True, show=False, id="search.kind_back"),
    ]  # fmt: skip

    def __init__(self, before: SearchQuery | None) -> None:
        super().__init__()
        self._kind = before.kind if before is not None else SearchKind.TEXT
        self._text = before.text if before is not None else ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(self._text, placeholder="text · 00 2a · topics.name", id="query")
            yield Static(id="how", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def _draw(self, error: str = "") -> None:
        words = Text("tab  ", "bold")
        for kind in SearchKind:
            words.append(f"[{kind}]" if kind is self._kind else f" {kind} ", "bold" if kind is self._kind else "dim")
        words.append(f"  {_MEANINGS[self._kind]}", "dim not bold")
        if error:
            words = Text(clean(error), bold(self.app.theme_variables["error"]))
        self.query_one("#how", Static).update(words)

    def action_kind(self, step: int) -> None:
        kinds = list(SearchKind)
        self._kind = kinds[(kinds.index(self._kind) + step) % len(kinds)]
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """A click on the line below chooses the kind that it hits."""
        if event.widget is self.query_one("#how"):
            at = event.x - len("tab  ")
            for kind in SearchKind:
                if 0 <= at < len(kind) + 2:
                    self._kind = kind
                    self._draw()
                at -= len(kind) + 2

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(search_query(event.value, self._kind))
        except SearchError as error:
            self._draw(str(error))


class Hits(NamedTuple):
    """All hits of the exchange that is shown, and the current one."""

    number: int
    found: list[tuple[str, SearchHit]]
    """Side and place, those of the request first."""
    at: int


class SearchFeature(ScreenFeature[CoreScreen]):
    """ctrl+f searches, n and N go to the next and previous hit."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("ctrl+f", "search", "Search", show=False,
                tooltip="Find text, hex bytes or a field", id="main.search"),
        Binding("n", "hit(1)", "Next hit", show=False, tooltip="Next hit of the search",
                id="main.next_hit"),
        Binding("N", "hit(-1)", "Previous hit", show=False, tooltip="Previous hit of the search",
                id="main.previous_hit"),
    ]  # fmt: skip

    _query: SearchQuery | None = None
    _hits: Hits | None = None

    def action_search(self) -> None:
        """Ask what to search."""

        def begin(query: SearchQuery | None) -> None:
            if query is not None:
                self._query, self._hits = query, None
                self.action_hit(1)

        self.app.push_screen(SearchDialog(self._query), begin)

    def action_hit(self, step: int) -> None:
        """Go to the next hit, of this exchange or of another."""
        if self._query is None:
            self.action_search()
            return
        hits, number = self._hits, self.screen.model.number
        if number is None:
            return
        if hits is None or hits.number != number:
            self._seek_hit(self._query, step, begins_here=True)
        elif 0 <= hits.at + step < len(hits.found):
            self._show_hit(self._query, hits._replace(at=hits.at + step))
        else:
            self._seek_hit(self._query, step, begins_here=False)

    def _seek_hit(self, query: SearchQuery, step: int, *, begins_here: bool) -> None:
        """Search the other exchanges; with `begins_here` first the shown one, from the shown side on."""
        number, side = self.screen.number, self.screen.model.side

        def here() -> Go | None:
            found = self._hits_of(query, number)
            first = next((n for n, (its_side, _) in enumerate(found) if its_side == side), len(found))
            at = first if step > 0 else len(found) - 1
            return partial(self._show_hit, query, Hits(number, found, at)) if 0 <= at < len(found) else None

        def find(rows: Int64) -> Go | None:
            there = query.first(self.screen.capture, rows)
            found = self._hits_of(query, there) if there is not None else []
            if there is None or not found:
                return None
            return partial(self._show_hit, query, Hits(there, found, 0 if step > 0 else len(found) - 1))

        self.screen.feature(RowSearchFeature).search(
            step, find, f"{query.text!r} in {query.searched}", around=True, here=here if begins_here else None
        )

    def _hits_of(self, query: SearchQuery, number: int) -> list[tuple[str, SearchHit]]:
        # decoded separately: the screen may be tracing the one that is shown
        [exchange] = self.screen.capture.at(range(number, number + 1))
        return [(side, hit) for side, hits in query.hits_of(exchange) for hit in hits]

    def _show_hit(self, query: SearchQuery, hits: Hits) -> None:
        """Go to a hit."""
        self._hits = hits
        side, hit = hits.found[hits.at]
        self.screen.go_to_place(Location(hits.number, side, hit.path), partial(self._light_up, query, hits))

    def _light_up(self, query: SearchQuery, hits: Hits) -> None:
        """Highlight all hits of the message that is shown, and select the current one."""
        side, hit = hits.found[hits.at]
        others = [other for its_side, other in hits.found if its_side == side]
        self.screen.field_tree.light_up({other.path for other in others})
        if query.data:
            self.screen.model.lit = [other[1:] for other in others if other.end - other.start == len(query.data)]
        if hit.end > hit.start:
            self.screen.model.selection = range(hit.start, hit.end)
        self.screen.bytes_pane.show_at(hit.start)
        self.screen.draw_inspector(f"{hits.at + 1} of {len(hits.found):,} in this exchange: {clean(query.text)}")
