"""Looking for text, bytes or a field: in the message that is shown first, then in those of the exchanges after it."""

from functools import partial
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from dissector.analysis.search import SearchError, SearchHit, SearchKind, SearchQuery, search_query
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.history import Place
from tui.screens.answering import Dialogue
from tui.screens.seeking import Go, Seeking


class SearchScreen(Dialogue[SearchQuery | None]):
    """Asks what to look for."""

    DEFAULT_CSS = """
    SearchScreen { align: center bottom; }
    SearchScreen Vertical { height: auto; background: $panel; border: round $primary; padding: 0 1; }
    #needle { border: none; background: $panel; padding: 0; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", id="search.close"),
        Binding("tab", "kind", "SearchKind", priority=True, tooltip="Text, hex or field", id="search.kind"),
        Binding("shift+tab", "records", "Records", priority=True, id="search.records",
                tooltip="Whether compressed records are opened in all exchanges"),
    ]  # fmt: skip

    def __init__(self, before: SearchQuery | None) -> None:
        super().__init__()
        self._kind = before.kind if before is not None else SearchKind.TEXT
        self._text = before.text if before is not None else ""
        self._opens_records = before is not None and before.opens_records

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(self._text, placeholder="text · 00 2a · topics.name", id="needle")
            yield Static(id="how", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def _draw(self, error: str = "") -> None:
        words = Text("look for ", "dim")
        for kind in SearchKind:
            words.append(f"[{kind}]" if kind is self._kind else f" {kind} ", "bold" if kind is self._kind else "dim")
        words.append(" tab · compressed records ", "dim")
        words.append("[opened]" if self._opens_records else "closed", "bold" if self._opens_records else "dim")
        words.append(" shift+tab", "dim")
        if error:
            words = Text(clean(error), "bold red")
        self.query_one("#how", Static).update(words)

    def action_kind(self) -> None:
        kinds = list(SearchKind)
        self._kind = kinds[(kinds.index(self._kind) + 1) % len(kinds)]
        self._draw()

    def action_records(self) -> None:
        self._opens_records = not self._opens_records
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """The line below switches where it is clicked."""
        if event.widget is self.query_one("#how"):
            at = event.x - 10
            if 0 <= at < sum(len(kind) + 2 for kind in SearchKind):
                self.action_kind()
            else:
                self.action_records()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(search_query(event.value, self._kind, opens_records=self._opens_records))
        except SearchError as error:
            self._draw(str(error))


class Hits(NamedTuple):
    """All hits of the exchange that is shown, and which of them it is on."""

    number: int
    found: list[tuple[str, SearchHit]]
    """Side and place, those of the request first."""
    at: int


class Searching(Seeking):
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

        self.app.push_screen(SearchScreen(self._needle), begin)

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
        self.go_to_place(Place(hits.number, side, hit.path), partial(self._light_up, sought, hits))

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
