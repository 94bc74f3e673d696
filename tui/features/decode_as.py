"""Says what connections are, and reads the capture again with that: "decode as".

The capture is read again from its files, so a choice holds for all of it. The filter stays, and the cursor goes to the
first row at or after the time of the one that it was on.
"""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual.binding import Binding

from dissector.capture_session import Capture
from dissector.core.text import clean, counted, endpoint_name
from dissector.detection.decode_as import DecodeAs, End, EndSelector, Protocol
from dissector.exchange.connection_facts import endpoint_of
from tui.feature import CAPTURE, ScreenFeature
from tui.features.filter import FilterFeature
from tui.messages import ApplyFilter, ReadAgain
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu

ROOMY = 120
"""Width from which on the title has a choice in full."""
MOST_SERVERS: Final = 100
"""Servers that are offered; those with the most connections."""


class OfferedConnections(NamedTuple):
    """Connections that something can be said of: those of a server, or one with a client."""

    name: str
    words: str
    server: End
    client: End | None = None

    def choices(self) -> list[tuple[str, DecodeAs]]:
        """What they can be said to be, in words."""
        these = EndSelector(self.server, self.client)
        brokers = [these] if self.client is None else [these, EndSelector(self.client, self.server)]
        kafka = [(f"Kafka, the broker is {endpoint_name(*each.server)}", each) for each in brokers]
        said = [(words, DecodeAs(each, Protocol.KAFKA)) for words, each in kafka]
        return [*said, ("TLS", DecodeAs(these, Protocol.TLS)), ("not Kafka", DecodeAs(these, Protocol.NONE))]


def offered_connections(capture: Capture, row: int | None) -> list[OfferedConnections]:
    """Return the connection of a row, if there is one; all of its server; servers that are not recognized as Kafka."""
    found = []
    if row is not None:
        number = capture.rows.connection_of(row)
        client, server = (endpoint_of(end) for end in capture.connections.ends(number))
        if client is not None and server is not None:
            one, other = (client.address, client.port), (server.address, server.port)
            name = f"C{number} {endpoint_name(*client)} → {endpoint_name(*server)}"
            found.append(OfferedConnections(clean(name), "the connection of this row", other, one))
            found.append(OfferedConnections(clean(endpoint_name(*server)), "all connections to its broker", other))
    return found + _unrecognized(capture)


def _unrecognized(capture: Capture) -> list[OfferedConnections]:
    protocols: dict[End, Counter[str]] = {}
    for _, server, protocol in capture.connections.unrecognized():
        protocols.setdefault(server, Counter())[protocol] += 1
    servers = sorted(protocols, key=lambda server: -protocols[server].total())[:MOST_SERVERS]
    return [
        OfferedConnections(
            clean(endpoint_name(*server)),
            f"{counted(protocols[server].total(), 'connection')}, {', '.join(sorted(protocols[server]))}", server,
        )
        for server in servers
    ]  # fmt: skip


class DecodeAsFeature(ScreenFeature[CoreScreen]):
    """U offers connections, what they are, and to undo what was said."""

    GROUP = CAPTURE
    NEEDS_ROWS = False

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("U", "decode_as", "Decode as", show=False, id="main.decode_as",
                tooltip="Set whether connections are Kafka, TLS or neither, and which end is the broker; or undo that"),
    ]  # fmt: skip

    _again_at: int | None = None
    """The time of the row to begin with, when all is read."""
    _again_filter = ""

    def begin_with(self, filter: str, time_ns: int | None) -> None:
        """Begin with a filter, at a time."""
        self._again_filter, self._again_at = filter, time_ns

    def rows_added(self, *, done: bool) -> None:
        if not done:
            return
        if self._again_at is not None and len(self.screen.capture):
            [times] = self.screen.capture.index.columns(["time_ns"], range(len(self.screen.capture)))
            rows = (row for row, time in enumerate(times) if isinstance(time, int) and time >= (self._again_at or 0))
            self.screen.go_to(next(rows, len(times) - 1))
        if self._again_filter:
            self.screen.post_message(ApplyFilter(self._again_filter))
        self._again_at, self._again_filter = None, ""

    def action_decode_as(self) -> None:
        """Choose connections, then what they are."""
        if not self.screen.done:
            self.notify("still reading the capture", timeout=2)
        elif not can_be_read_again(self.screen.capture):
            self.notify("this capture can't be read again: use --decode-as", timeout=4)
        else:
            self._offer_connections()

    def _offer_connections(self) -> None:
        said = list(self.screen.capture.decode_as)
        offered = offered_connections(self.screen.capture, self.screen.number if len(self.screen.capture) else None)
        menu = [Choice(each.name, each.words) for each in offered]
        menu += [Choice(clean(f"Undo {each}"), "decode these by content again") for each in said]

        def chosen(at: int | None) -> None:
            if at is None:
                return
            if at < len(offered):
                self._offer_protocols(offered[at])
            else:
                del said[at - len(offered)]
                self._read_again(said)

        if menu:
            self.app.push_screen(Menu("Decode as: which connections?", menu), chosen)
        else:
            self.notify("no connection has data", timeout=3)

    def _offer_protocols(self, connections: OfferedConnections) -> None:
        choices = connections.choices()

        def chosen(at: int | None) -> None:
            if at is not None:
                said = choices[at][1]
                kept = [each for each in self.screen.capture.decode_as if each.selector != said.selector]
                self._read_again([*kept, said])

        self.app.push_screen(Menu(f"Decode {connections.name} as", [Choice(words) for words, _ in choices]), chosen)

    def _read_again(self, said: Sequence[DecodeAs]) -> None:
        row = self.screen.number if len(self.screen.capture) else None
        time_ns = None if row is None else self.screen.capture.index.columns(["time_ns"], range(row, row + 1))[0][0]
        text = self.screen.feature(FilterFeature).text
        self.screen.post_message(ReadAgain(self.screen, said, text, time_ns if isinstance(time_ns, int) else None))

    def title_words(self) -> str:
        said = self.screen.said_of_connections()
        if not said:
            return ""
        words = f"decode as {said[0]}" if len(said) == 1 and self.app.size.width >= ROOMY else f"{len(said)} decode-as"
        return f" · {words}"


def can_be_read_again(capture: Capture) -> bool:
    """Whether the capture is files that are whole: no pipe, and no live capture."""
    return all(isinstance(source, str) and source != "-" for source in capture.sources)
