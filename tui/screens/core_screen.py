"""The panes that all features share: exchanges above; below, the fields of the selected one beside its bytes; a line
about the field.

The screen passes the messages of one pane to the others, through the model; panes don't know each other. What a user
does with them is in `features/`; `main_screen.py` lists them.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.widgets import Static

from dissector.capture_session import Capture
from dissector.core.text import clean, counted
from dissector.exchange.tls_words import handshake_fields
from dissector.protocol.tree import Node
from tui.exchange_model import ExchangeModel
from tui.fitted_text import fitted_lines
from tui.labels import byte_words, bytes_title, inspector_text, range_readings, row_words
from tui.location_history import Location, LocationHistory
from tui.messages import GoTo
from tui.screens.capture_screen import CaptureScreen
from tui.theme import bold
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree
from tui.widgets.filter_bar import FilterBar
from tui.widgets.key_footer import KeyFooter

ROOMY = 40
"""Height from which on the field has two lines."""


class CoreScreen(CaptureScreen):
    """List, fields and bytes of one capture."""

    AUTO_FOCUS: ClassVar[str | None] = "#list"  # and not the filter, whose keys would be the first footer
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="main.help"),
        Binding("q", "app.quit", "Quit", tooltip="Quit kdissect", id="main.quit"),
        Binding("tab", "app.focus_next", "Pane", show=False, tooltip="Next pane", id="main.next_pane"),
        Binding(
            "shift+tab", "app.focus_previous", "Previous pane", show=False, tooltip="Previous pane",
            id="main.previous_pane",
        ),
        Binding(
            "escape", "escape", "Stop", show=False, id="main.stop",
            tooltip="Stop the current task; then remove the filter (u brings it back)",
        ),
        Binding("enter", "open", "Fields", show=False,
                tooltip="Go from the list to the fields of the exchange", id="main.open"),
    ]  # fmt: skip

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.model = ExchangeModel(capture, waits=False)
        self.history = LocationHistory()
        self.after_tracing: Callable[[], object] | None = None
        """What to do with the shown message once it is traced."""
        self._extra = ""
        """What the line about the field begins with."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="notice", markup=False)
        yield Static(id="empty", markup=False)
        yield FilterBar(id="filter")
        with Container(id="panes"):
            yield ExchangeList(self.capture, self.view, self.appearance, id="list")
            yield Static(id="legend", markup=False)
            with Horizontal(id="lower"):
                yield FieldTree(id="fields")
                yield BytesPane(self.model, id="bytes")
        yield Static(id="inspector", markup=False)
        yield KeyFooter()

    @property
    def field_tree(self) -> FieldTree:
        return self.query_one(FieldTree)

    @property
    def bytes_pane(self) -> BytesPane:
        return self.query_one(BytesPane)

    @property
    def place(self) -> Location | None:
        """The location of the user: row, side, field; None before there is a row."""
        model = self.model
        if model.number is None:
            return None
        return Location(model.number, model.side, model.node.path if model.node is not None else "")

    def go_to(self, number: int) -> bool:
        """Move the cursor to a row, from 0; return whether the list shows it."""
        return self.go_to_place(Location(number))

    def go_to_place(self, place: Location, then: Callable[[], object] | None = None) -> bool:
        """Jump to a row, and to a side and a field of it if they are given; return whether the list shows the row. The
        field of a long message is selected when that is traced, and `then` is called. The history has where the user
        was."""
        here = self.place
        there = self.show_place(place, then)
        if there and here is not None and here != self.place:
            self.history.push(here)
        return there

    def show_place(self, place: Location, then: Callable[[], object] | None = None) -> bool:
        """Jump as `go_to_place` does, without the history."""
        position = self.view.position(place.number)
        if position is None:
            return False
        if self.model.shows_records:  # what is jumped to is in the message itself
            self.model.shows_records = False
            self.bytes_pane.update()
            self.draw_pane_titles()
        self.exchange_list.cursor = position
        if place.number != self.model.number:
            self._choose(place.number)
        if place.side is not None and place.side != self.model.side and self.model.flip():
            self.draw_message()
        if place.path or then is not None:
            self._when_traced(lambda: self._arrive(place.path, then))
        return True

    def _when_traced(self, do: Callable[[], object]) -> None:
        """Call it at once, or when the shown message is traced; never if another one is shown before."""
        if self.model.untraced is None:
            do()
        else:
            self.after_tracing = do
            self.draw_inspector()

    def _arrive(self, path: str, then: Callable[[], object] | None) -> None:
        node = self.model.traced.message.tree.find(path) if self.model.traced is not None and path else None
        if node is not None:
            self.choose_field(node)
        if then is not None:
            then()

    def choose_field(self, node: Node) -> None:
        """Select a field of the message in all panes."""
        self.model.node = node
        self.field_tree.reveal(node)
        self.bytes_pane.update()
        self.draw_pane_titles()
        self.draw_inspector()

    def on_go_to(self, event: GoTo) -> None:
        if not self.go_to_place(event.place):
            self.notify(f"exchange {event.place.number + 1} is not shown", timeout=2)

    def on_mount(self) -> None:
        if not self.app.is_running:  # it ended before it began
            return
        for each in self.features:
            each.mounted()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.draw_inspector(self._extra))
        self.exchange_list.focus()
        self.draw_title()
        self.draw_message()
        self.begin_reading()

    def on_resize(self) -> None:
        for each in self.features:
            each.resized()
        self.draw_title()
        self.draw_inspector(self._extra)

    def _choose(self, number: int) -> None:
        if len(self.capture):
            keeps = self.model.node is not None and self.focused is not self.exchange_list
            path = self.model.node.path if keeps and self.model.node is not None else ""
            self.model.choose(number)
            self.draw_message()
            self.choose_again(path)
            if self.done:
                self._draw_notice()

    def show_none(self) -> None:
        """No row is shown: neither is a message."""
        self.exchange_list.forget_chosen()
        if self.model.number is not None:
            self.model.clear()
            self.draw_message()

    def choose_again(self, path: str) -> None:
        """Select the field that was selected in another message, or the nearest above it that this one has too."""
        if path:
            self._when_traced(lambda: self._choose_nearest(path))

    def _choose_nearest(self, path: str) -> None:
        tree = self.model.traced.message.tree if self.model.traced is not None else None
        while tree is not None and path:
            if (node := tree.find(path)) is not None:
                self.choose_field(node)
                return
            path = path[: max(path.rfind("."), path.rfind("["), 0)]

    def draw_message(self) -> None:
        """Another message is shown: draw its fields and bytes."""
        self.after_tracing = None
        tls = self.model.exchange.tls if self.model.exchange is not None else None
        self.field_tree.show(self.model.traced, handshake_fields(tls) if tls is not None else ())
        self.bytes_pane.update()
        self.draw_pane_titles()
        self.draw_inspector()
        for each in self.features:
            each.message_drawn()

    def draw_pane_titles(self) -> None:
        exchange = self.model.exchange
        if exchange is None:
            self.field_tree.border_title, self.bytes_pane.border_title = "", "bytes"
            return
        parts = []
        for side in ("request", "response"):
            there = getattr(exchange, side) is not None
            name = side.capitalize() if there else f"no {side}"
            parts.append(f"\\[{name}]" if side == self.model.side else name)
        stored = exchange.row.kind.capitalize()
        reading = " · reading…" if self.model.untraced is not None else ""
        whole = stored if exchange.is_stored else "TLS handshake" if exchange.row.kind == "tls" else ""
        self.field_tree.border_title = whole or f"{parts[0]} ▸ {parts[1]}{reading}"
        self.bytes_pane.border_title = bytes_title(self.model).replace("[", "\\[")

    def draw_inspector(self, extra: str = "") -> None:
        self._extra = extra
        message = self.model.traced.message if self.model.traced is not None else None
        exchange = self.model.exchange
        side = exchange.row.kind if exchange is not None and exchange.is_stored else self.model.side
        summary, more = inspector_text(self.model.node, message, side)
        if self.model.node is None and exchange is not None:
            summary = row_words(exchange)
            if exchange.findings:
                more = Text().append("i explains · ", "dim")
                words = " · ".join(finding.message for finding in exchange.findings)
                more.append(clean(words), bold(self.app.theme_variables["warning"]))
                summary, more = (summary, more) if self.app.size.height >= ROOMY else (more, summary)
        if self.after_tracing is not None and self.model.untraced is not None:
            extra = f"reading {counted(len(self.model.untraced.data), 'byte')}, esc stops"
        if extra:
            summary = Text(extra, "bold").append(" · ").append_text(summary)
        roomy = self.app.size.height >= ROOMY
        inspector = self.query_one("#inspector", Static)
        inspector.styles.height = 2 if roomy else 1
        if roomy and not more:
            inspector.update(fitted_lines(self.app.console, summary, self.app.size.width - 2, 2))
        else:
            inspector.update(summary.append("\n" if roomy else " · ").append_text(more) if more else summary)

    def on_exchange_list_row_chosen(self, event: ExchangeList.RowChosen) -> None:
        if event.number == self.model.number or event.numbering != self.exchange_list.numbering:
            return
        if self.place is not None and self._is_jump(self.place.number, event.number):
            self.history.push(self.place)
        self._choose(event.number)

    def _is_jump(self, start: int, end: int) -> bool:
        """Whether a move of the list's cursor is a screenful or more."""
        before, now = self.view.position(start), self.view.position(end)
        return before is None or now is None or abs(now - before) > self.exchange_list.size.height

    def on_exchange_list_row_opened(self) -> None:
        self.field_tree.focus()

    def on_field_tree_field_chosen(self, event: FieldTree.FieldChosen) -> None:
        if self.model.traced is None or not self.model.traced.has(event.node):
            return
        if self.focused not in (self.bytes_pane, self.exchange_list) and event.node is not self.model.node:
            self.model.node = event.node
            self.bytes_pane.update()
            self.draw_pane_titles()
            self.draw_inspector()

    def on_bytes_pane_byte_chosen(self, event: BytesPane.ByteChosen) -> None:
        source = self.model.source
        if self.model.traced is None or source is None or source.data is not event.data:
            return
        node = self.model.traced.node_at(source.number, event.offset)
        if node is not None:
            self.model.node = node
            self.field_tree.reveal(node)
            self.bytes_pane.refresh()
        self.draw_pane_titles()
        self.draw_inspector(byte_words(self.model, event.data, event.offset))

    def on_bytes_pane_range_chosen(self, event: BytesPane.RangeChosen) -> None:
        source = self.model.source
        if source is not None and source.data is event.data and self.model.selection == event.selection:
            self.draw_inspector(range_readings(event.data, event.selection))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The fields always have a selected one when they get the focus."""
        if event.widget is self.field_tree and self.model.node is None:
            self.field_tree.choose_first()

    def key_of(self, action: str) -> str:
        """Return the key of an action, as the user mapped it."""
        bindings = (active.binding for active in self.active_bindings.values())
        return next((self.app.get_key_display(each) for each in bindings if each.action == action), "")

    def action_open(self) -> None:
        if self.focused is self.exchange_list:
            self.field_tree.focus()
