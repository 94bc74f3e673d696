"""The main screen: exchanges above; below, the fields of the chosen one beside its bytes; a line about the field.

The screen passes what one pane says on to the others, through the model; panes don't know each other.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static
from textual.worker import get_current_worker

from dissector.capture import CaptureError
from dissector.capture_file import Capture, Progress
from dissector.text import clean
from tui.loader import load
from tui.model import Model
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree
from tui.words import byte_readings, inspector_text, progress_words

SLIM, NARROW = 76, 130
"""Screen widths below which the bytes get less room."""
LIST_SHARES, LIST_SHARE = (4, 6, 9, 13, 16), 2
BYTES_WIDTHS = {"slim": 26, "narrow": 42, "wide": 75}
STEP = 8


class MainScreen(Screen[None]):
    """Everything at one glance."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Help", key_display="?", id="main.help"),
        Binding("q", "app.quit", "Quit", id="main.quit"),
        Binding("tab", "app.focus_next", "Pane", id="main.next_pane"),
        Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, id="main.previous_pane"),
        Binding("enter", "open", "Fields", id="main.open", priority=False),
        Binding("r", "flip", "Req↔Resp", id="main.flip"),
        Binding("left_square_bracket", "along(-1)", "Connection", key_display="[ ]", id="main.previous_on_connection"),
        Binding("right_square_bracket", "along(1)", "Next on connection", show=False, id="main.next_on_connection"),
        Binding("e", "trouble(1)", "Error", key_display="e E", id="main.next_trouble"),
        Binding("E", "trouble(-1)", "Previous error", show=False, id="main.previous_trouble"),
        Binding("f8,ctrl+down", "step(1)", "Next exchange", show=False, id="main.next"),
        Binding("f7,ctrl+up", "step(-1)", "Previous exchange", show=False, id="main.previous"),
        Binding("backslash", "maximise_pane", "Maximise", show=False, id="main.maximise"),
        Binding("plus", "list_room(1)", "More list", show=False, id="main.more_list"),
        Binding("minus", "list_room(-1)", "Less list", show=False, id="main.less_list"),
        Binding("less_than_sign", "bytes_room(1)", "More bytes", show=False, id="main.more_bytes"),
        Binding("greater_than_sign", "bytes_room(-1)", "Less bytes", show=False, id="main.less_bytes"),
    ]

    class Unreadable(Message):
        """There is nothing to look at."""

        def __init__(self, error: CaptureError) -> None:
            super().__init__()
            self.error = error

    SETTLED: ClassVar[bool] = True
    """Whether rows get their final order when all is read."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture
        self.model = Model(capture)
        self._progress = Progress(0, 0, 0, 0)
        self._done = False
        self._share = LIST_SHARE
        self._bytes_extra = 0

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="notice", markup=False)
        yield Static(id="empty", markup=False)
        yield ExchangeList(self._capture, id="list")
        with Horizontal(id="lower"):
            yield FieldTree(id="fields")
            yield BytesPane(self.model, id="bytes")
        yield Static(id="inspector", markup=False)
        yield Footer(show_command_palette=False)

    @property
    def _list(self) -> ExchangeList:
        return self.query_one(ExchangeList)

    @property
    def _fields(self) -> FieldTree:
        return self.query_one(FieldTree)

    @property
    def _bytes(self) -> BytesPane:
        return self.query_one(BytesPane)

    def on_mount(self) -> None:
        self._list.focus()
        self._draw_title()
        self._draw_message()
        self._load()

    @work(thread=True, exclusive=True, group="load")
    def _load(self) -> None:
        worker = get_current_worker()

        def tell(progress: Progress, done: bool) -> None:
            if not worker.is_cancelled:
                self.app.call_from_thread(self._loaded, progress, done)

        try:
            load(self._capture, tell, lambda: worker.is_cancelled, settled=self.SETTLED)
        except CaptureError as error:  # a pipe that turns out to be no capture: said when the screen is gone
            if not worker.is_cancelled:
                self.app.call_from_thread(self.post_message, self.Unreadable(error))

    def _loaded(self, progress: Progress, done: bool) -> None:
        """A step further: more rows, and at the end the final order."""
        self._progress, self._done = progress, done
        self._list.show(len(self._capture), anew=done)
        self._draw_title()
        if not done:
            return
        if len(self._capture):
            self._choose(self._list.cursor)
        else:
            self._draw_empty()
        if self._capture.problems:
            notice = self.query_one("#notice", Static)
            notice.update(Text("\n".join("! " + clean(problem.message) for problem in self._capture.problems)))
            notice.add_class("shown")

    def _draw_title(self) -> None:
        names = ", ".join(clean(name.rpartition("/")[2]) for name in self._capture.names)
        title = Text(names, "bold")
        title.append(f" · {len(self._capture):,} exchanges · {self._capture.connections:,} connections", "")
        state = progress_words(self._progress, done=self._done)
        room = self.app.size.width - 2 - title.cell_len - len(state)
        self.query_one("#title", Static).update(title.append(" " * max(1, room)).append(state, "dim"))

    def _draw_empty(self) -> None:
        seen = f"{self._capture.packets:,} packets, {self._capture.connections:,} TCP connections"
        spoken = ", ".join(f"{name} {count:,}" for name, count in self._capture.protocols.items())
        words = f"No Kafka in this capture\n\n{seen}{': ' if spoken else ''}{spoken}.\n"
        hint = (
            "Capture the broker's port from before the client connects:\n\ntcpdump -i any -w out.pcap tcp port 9092"
            "\n\nOr say which port is Kafka's: kdissect FILE --port 19092"
        )
        empty = self.query_one("#empty", Static)
        empty.update(Text(words + hint, justify="center"))
        empty.add_class("shown")
        for selector in ("#list", "#lower"):
            self.query_one(selector).add_class("hidden")

    def _choose(self, number: int) -> None:
        if len(self._capture):
            self.model.choose(number)
            self._draw_message()

    def _draw_message(self) -> None:
        """Another message is shown: its fields, its bytes."""
        self._fields.show(self.model.look)
        self._bytes.update()
        self._draw_titles()
        self._draw_inspector()

    def _draw_titles(self) -> None:
        exchange = self.model.exchange
        if exchange is None:
            return
        parts = []
        for side in ("request", "response"):
            there = getattr(exchange, side) is not None
            name = side.capitalize() if there else f"no {side}"
            parts.append(f"\\[{name}]" if side == self.model.side else name)
        stored = exchange.row.kind.capitalize()
        self._fields.border_title = stored if exchange.is_stored else f"{parts[0]} ▸ {parts[1]}"
        source = self.model.source
        if source is not None:
            node = self.model.node
            span = f" {node.start:#06x}–{node.end:#06x}" if node is not None else ""
            name = "bytes" if source.number == 0 else f"bytes · {clean(source.name)}".replace("[", "\\[")
            self._bytes.border_title = name + span

    def _draw_inspector(self, extra: str = "") -> None:
        message = self.model.look.message if self.model.look is not None else None
        exchange = self.model.exchange
        side = exchange.row.kind if exchange is not None and exchange.is_stored else self.model.side
        text = inspector_text(self.model.node, message, side)
        if self.model.node is None and exchange is not None and exchange.findings:
            text = Text(clean(" · ".join(finding.message for finding in exchange.findings)), "bold yellow")
        if extra:
            text = Text(extra, "bold").append(" · ").append_text(text)
        self.query_one("#inspector", Static).update(text)

    def on_exchange_list_chosen(self, event: ExchangeList.Chosen) -> None:
        self._choose(event.number)

    def on_exchange_list_opened(self) -> None:
        self._fields.focus()

    def on_field_tree_field_chosen(self, event: FieldTree.FieldChosen) -> None:
        if self.focused is not self._bytes and event.node is not self.model.node and self.focused is not self._list:
            self.model.node = event.node
            self._bytes.update()
            self._draw_titles()
            self._draw_inspector()

    def on_bytes_pane_byte_chosen(self, event: BytesPane.ByteChosen) -> None:
        source = self.model.source
        if self.model.look is None or source is None:
            return
        node = self.model.look.node_at(source.number, event.offset)
        if node is not None:
            self.model.node = node
            self._fields.reveal(node)
            self._bytes.refresh()
        self._draw_titles()
        self._draw_inspector(byte_readings(source.data, event.offset))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Whoever comes to the fields finds one of them chosen."""
        if event.widget is self._fields and self.model.node is None:
            self._fields.choose_first()

    def action_open(self) -> None:
        if self.focused is self._list:
            self._fields.focus()

    def action_flip(self) -> None:
        """The other message of the exchange; a field of the same path stays chosen."""
        if self.model.flip():
            self._draw_message()
        elif self.model.exchange is not None:
            self.notify(f"there is no {'response' if self.model.side == 'request' else 'request'}", timeout=2)

    def action_step(self, rows: int) -> None:
        self._list.cursor += rows

    def action_along(self, step: int) -> None:
        """The next exchange of the same connection."""
        if self.model.exchange is not None:
            connection = self.model.exchange.row.connection
            self._seek(step, lambda number: self._capture.connection_of(number) == connection, "on this connection")

    def action_trouble(self, step: int) -> None:
        """The next exchange with a warning or an error."""
        self._seek(step, self._capture.is_trouble, "with something wrong")

    @work(thread=True, exclusive=True, group="seek")
    def _seek(self, step: int, wanted: Callable[[int], bool], words: str) -> None:
        """Look for a row beside the screen: on a large capture it may take a while, and the user may go on."""
        worker = get_current_worker()
        number = self._list.cursor + step
        while 0 <= number < len(self._capture) and not worker.is_cancelled:
            if wanted(number):
                self.app.call_from_thread(setattr, self._list, "cursor", number)
                return
            number += step
        if not worker.is_cancelled:
            self.app.call_from_thread(
                self.notify, f"no {'more' if step > 0 else 'earlier'} exchange {words}", timeout=2
            )

    def action_maximise_pane(self) -> None:
        """The focused pane alone, and back."""
        panes: list[Widget] = [self._list, self._fields, self._bytes]
        alone = any(pane.has_class("hidden") for pane in panes)
        lower = self.query_one("#lower")
        for pane in panes:
            pane.set_class(not alone and pane is not self.focused, "hidden")
        lower.set_class(not alone and self.focused is self._list, "hidden")
        self._bytes.styles.width = "1fr" if not alone and self.focused is self._bytes else None
        self._draw_widths()

    def action_list_room(self, step: int) -> None:
        self._share = max(0, min(len(LIST_SHARES) - 1, self._share + step))
        share = LIST_SHARES[self._share]
        self._list.styles.height, self.query_one("#lower").styles.height = f"{share}fr", f"{20 - share}fr"

    def action_bytes_room(self, step: int) -> None:
        self._bytes_extra += step * STEP
        self._draw_widths()

    def on_resize(self) -> None:
        self._draw_widths()
        self._draw_title()

    def _draw_widths(self) -> None:
        width = self.app.size.width
        if self._fields.has_class("hidden"):
            return
        usual = BYTES_WIDTHS["slim" if width < SLIM else "narrow" if width < NARROW else "wide"]
        self._bytes.styles.width = max(20, min(width - 20, usual + self._bytes_extra))
