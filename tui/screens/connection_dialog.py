"""The dialog about one connection: whose it is, its rows, and what TCP did on it. It returns a row to go to.

The numbers are those of `kdissect stats --connections` and of the fields `tcp.*`. Every word is clean.
"""

from functools import partial
from typing import ClassVar, Final, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from dissector.capture.process_notes import Process
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import clean, duration, seconds, shortened
from dissector.exchange.connection_facts import ConnectionFacts
from dissector.tls.session import TlsSession
from dissector.transport.tcp_facts import TcpFacts
from tui.screens.dialog import Dialog
from tui.threads import call_on_ui

MOST_CLIENT_IDS: Final = 4
"""Client ids that are named; the others are counted."""
LONGEST_NAME: Final = 120
"""Characters of a name from the wire."""
_COUNTS: Final = (
    ("packets", "packets"), ("bytes", "bytes"), ("retransmitted", "bytes retransmitted"),
    ("lost", "bytes not in the capture"), ("zero_windows", "zero windows"),
    ("full_windows", "full windows"),
)  # fmt: skip
_TROUBLES: Final = ("retransmitted", "lost", "zero_windows", "full_windows")


class DirectionCount(NamedTuple):
    """A number of both directions."""

    name: str
    out: int
    """From the client, as `back` is from the broker."""
    back: int
    is_trouble: bool
    """Whether it should be 0, and is not."""


class ConnectionSummary(NamedTuple):
    """What is known of a connection."""

    facts: list[tuple[str, str]]
    """Each with its name; of what is not known there is none."""
    counts: list[DirectionCount]
    first_row: int
    """From 0, as `last_row`."""
    last_row: int


def connection_summary(capture: Capture, connection: int) -> ConnectionSummary:
    """Look up what is known of a connection that has rows. It may wait for the resolver: for a worker's thread."""
    known = capture.connections
    facts = known.facts(connection)
    columns = capture.index.numbers(np.arange(len(capture)))
    rows = np.flatnonzero(columns.connection == connection)
    named = [*_ends(capture, connection, facts)]
    named += [("client id", _client_ids(capture, rows, columns.client_id[rows]))]
    named += [("software", " ".join(_shown(each) for each in known.software(connection) if each))]
    named += [("TLS", _tls(known.tls(connection)))]
    choice = known.choice(connection)
    named += [("decoded as", f"{choice.protocol}, as you said: {choice}" if choice is not None else "")]
    first, last = (int(rows[0]), int(rows[-1]))
    span = f"{first + 1:,}" if first == last else f"{first + 1:,} to {last + 1:,}"
    named += [("rows", span if len(rows) == 1 else f"{len(rows):,}, from {span}")]
    named += [
        ("first packet", _since(capture, known.first_time_ns(connection))),
        ("closed", _closed(capture, connection)),
    ]
    tcp = None if facts is None else facts.tcp
    if tcp is not None:
        named += _round_trips(tcp)
    return ConnectionSummary([each for each in named if each[1]], _counts(tcp), first, last)


def _ends(capture: Capture, connection: int, facts: ConnectionFacts | None) -> list[tuple[str, str]]:
    client, server = capture.connections.ends(connection)
    if facts is None:
        return [("client", _shown(client)), ("broker", _shown(server))]
    return [
        ("client", _end(client, facts.client_host, facts.client_ip)), ("client process", _process(facts.process)),
        ("broker", _end(server, facts.server_host, facts.server_ip)),
        ("broker process", _process(facts.server_process)),
    ]  # fmt: skip


def _end(address: str, host: str | None, ip: str | None) -> str:
    return _shown(address) + (f", {_shown(host)}" if host and host != ip else "")


def _process(process: Process | None) -> str:
    if process is None:
        return ""
    container = f", container {_shown(process.container)}" if process.container else ""
    return f"{_shown(process.name)} {process.pid}{container}"


def _client_ids(capture: Capture, rows: Int64, numbers: Int64) -> str:
    """The client ids, in the order of their first rows; those of connections rarely change."""
    firsts = np.sort(np.unique(numbers, return_index=True)[1])
    shown = (capture.exchange(row).row for row in rows[firsts[: MOST_CLIENT_IDS + 1]].tolist())
    names = [name for row in shown if (name := row.client_id)]
    more = len(firsts) - MOST_CLIENT_IDS - 1
    return ", ".join(_shown(each) for each in names) + (f" and {more:,} more" if more > 0 else "")


def _tls(session: TlsSession | None) -> str:
    if session is None:
        return ""
    words = [session.version or "TLS", session.cipher, session.server_name and f"for {_shown(session.server_name)}"]
    return ", ".join(clean(each) for each in (*words, session.state.value.replace("-", " ")) if each)


def _since(capture: Capture, time_ns: int | None) -> str:
    return "" if time_ns is None else f"{seconds(time_ns - capture.start_ns)} s"


def _closed(capture: Capture, connection: int) -> str:
    closed = capture.connections.closed(connection)
    if closed is None:
        return "not in the capture"
    return f"{_since(capture, closed[0])}, by the {'client' if closed[1] else 'broker'}"


def _round_trips(tcp: TcpFacts) -> list[tuple[str, str]]:
    shake = "not in the capture" if tcp.handshake_ns is None else duration(tcp.handshake_ns)
    if tcp.ack_ns is None or tcp.least_ack_ns is None:
        return [("handshake RTT", shake), ("ack RTT", "no segment was acknowledged separately")]
    acks = f"{duration(tcp.least_ack_ns)} at least, {duration(tcp.ack_ns)} on average"
    return [("handshake RTT", shake), ("ack RTT", acks)]


def _counts(tcp: TcpFacts | None) -> list[DirectionCount]:
    if tcp is None:
        return []
    both = [(words, *(getattr(side, name) for side in tcp.sides), name in _TROUBLES) for name, words in _COUNTS]
    return [DirectionCount(words, out, back, bad and out + back > 0) for words, out, back, bad in both]


def _shown(text: str) -> str:
    return clean(shortened(text, LONGEST_NAME))


class ConnectionDialog(Dialog[int]):
    """One connection; g and G return its first and its last row."""

    DEFAULT_CSS = """
    ConnectionDialog { align: center middle; }
    #connection { width: 76; max-width: 96%; height: auto; max-height: 96%; background: $panel;
                  border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,W,enter", "dismiss", "Close", id="connection.close"),
        Binding("g", "first", "First row", id="connection.first"),
        Binding("G", "last", "Last row", id="connection.last"),
        Binding("j,down", "scroll(1)", "Down", show=False, id="connection.down"),
        Binding("k,up", "scroll(-1)", "Up", show=False, id="connection.up"),
    ]

    def __init__(self, capture: Capture, connection: int) -> None:
        super().__init__()
        self._capture = capture
        self._connection = connection
        self._summary: ConnectionSummary | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="connection") as box:
            box.border_title = f"Connection C{self._connection}"
            box.border_subtitle = "g first row · G last row · esc closes"
            yield Static("…", id="connection-facts", markup=False)

    def on_mount(self) -> None:
        self._look_up()

    @work(thread=True)
    def _look_up(self) -> None:
        found = connection_summary(self._capture, self._connection)
        call_on_ui(self, partial(self._show, found))

    def _show(self, found: ConnectionSummary) -> None:
        self._summary = found
        self.query_one("#connection-facts", Static).update(Group(*_tables(found)))

    def action_first(self) -> None:
        if self._summary is not None:
            self.dismiss(self._summary.first_row)

    def action_last(self) -> None:
        if self._summary is not None:
            self.dismiss(self._summary.last_row)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def _tables(found: ConnectionSummary) -> list[Table]:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in found.facts:
        facts.add_row(name, Text(value))
    if not found.counts:
        return [facts]
    counts = Table.grid(padding=(0, 2))
    counts.add_column(style="bold", no_wrap=True)
    for _ in range(2):
        counts.add_column(justify="right", no_wrap=True)
    counts.add_row("", "", "")
    counts.add_row("", "client → broker", "broker → client")
    for name, out, back, is_trouble in found.counts:
        words = f"! {name}" if is_trouble else name
        counts.add_row(words, f"{out:,}", f"{back:,}")
    return [facts, counts]
