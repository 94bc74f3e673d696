"""The selected exchange, message and field, without a screen; which bytes belong to which field.

Invariants:
  * the selected field is one of the shown message's tree, or of its TLS records, or None;
  * `levels` names only bytes of the source that the bytes pane shows.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final

from dissector.capture_session import Capture
from dissector.exchange.info_column import records_in
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.tree import ByteSource, Node
from dissector.records.produced_offsets import Places, produced_offsets
from dissector.tls.record_parts import TlsRecord
from tui.record_source import RecordSource
from tui.value_parts import json_nodes, may_open

DEEPEST_SHADE = 3
"""Ancestors farther up share one shade."""
_PRODUCED: Final = re.compile(r"body\.topic_data\[(\d+)\]\.partition_data\[(\d+)\]\.records\[0\]\.")
"""A path of a record in the one batch that a request has for a partition."""
LONG_BYTES, LONG_RECORDS = 1 << 15, 256
"""Tracing a longer message takes so long that the screen would freeze."""


@dataclass
class TracedMessage:
    """A message with the tree of its fields, the parent of each node, and the TLS records that it came in."""

    message: ExchangeMessage
    tls_records: InitVar[Sequence[TlsRecord]] = ()
    base_offsets: Places = field(default_factory=dict)
    """What the response gives to the records of a Produce."""
    parents: dict[int, Node] = field(default_factory=dict)
    """The parent of each node, by the node's id."""
    sources: list[ByteSource] = field(init=False)
    """The frame, decompressed sections, the TLS records."""
    records: RecordSource | None = field(init=False)
    _json: dict[int, list[Node]] = field(init=False, default_factory=dict)
    """The members of texts that are JSON, by the field's id."""

    def __post_init__(self, tls_records: Sequence[TlsRecord]) -> None:
        message, tops = self.message, [self.message.tree]
        self.sources, self.records = list(message.sources), None
        if tls_records:
            self.records = RecordSource(len(message.sources), tls_records, message.whole)
            self.sources.append(self.records.source)
            self.parents[id(self.records.tree)] = message.tree
            tops.append(self.records.tree)
        for top in tops:
            for node in top.walk():
                for child in node.children:
                    self.parents[id(child)] = node

    def parts(self, node: Node) -> Sequence[Node]:
        """Return what a field opens to: its fields; of a text that is JSON its members."""
        if node.children or not may_open(node):
            return node.children
        parts = self._json.get(id(node))
        if parts is None:
            parts = self._json[id(node)] = json_nodes(node, self.message)
            for top in parts:
                self.parents[id(top)] = node
                for each in top.walk():
                    for child in each.children:
                        self.parents[id(child)] = each
        return parts

    def log_offset(self, node: Node) -> int | None:
        """Return the offset that a record of a Produce has in the log; None of other fields, and where it is not
        known."""
        if node.type != "RECORD" or not (place := _PRODUCED.match(node.path)):
            return None
        base = self.base_offsets.get((int(place[1]), int(place[2])))
        delta = next((each.value for each in node.children if each.name == "offset_delta"), None)
        return base + delta if base is not None and isinstance(delta, int) else None

    def in_frame(self, node: Node) -> tuple[int, int]:
        """Return start and end of a field in the frame: of a decompressed one those of the compressed section."""
        source, start, end = node.source, node.start, node.end
        while (compressed := self.message.sources[source].compressed) is not None:
            source, start, end = compressed.source, compressed.start, compressed.end
        return start, end

    def has(self, node: Node) -> bool:
        """Return whether a node belongs to this message."""
        return node is self.message.tree or id(node) in self.parents

    def chain(self, node: Node) -> list[Node]:
        """Return the nodes from the root down to `node`."""
        chain = [node]
        while (parent := self.parents.get(id(chain[-1]))) is not None:
            chain.append(parent)
        return chain[::-1]

    def node_at(self, source: int, offset: int) -> Node | None:
        """Return the leaf that a byte of a source belongs to."""
        level: Sequence[Node] = [self.message.tree] if source == 0 else self.roots(source)
        found: Node | None = None
        while True:
            inside = next((n for n in level if n.source == source and n.start <= offset < n.end), None)
            if inside is None:
                return found
            found, level = inside, self.parts(inside)

    def roots(self, source: int) -> Sequence[Node]:
        """Return the topmost nodes of a source; of the frame, those below the root."""
        if source == 0:
            return self.message.tree.children
        if self.records is not None and source == self.records.source.number:
            return [self.records.tree]
        nodes = self.message.tree.walk()
        return [n for n in nodes if n.source == source and self.parents[id(n)].source != source]


class ExchangeModel:
    """The selected exchange, which of its messages is shown, and the selected field."""

    def __init__(self, capture: Capture, *, waits: bool = True) -> None:
        """Unless it `waits`, the screen traces long messages in a thread and passes the result to `take`."""
        self.capture = capture
        self._waits = waits
        self.number: int | None = None
        self.exchange: Exchange | None = None
        self.side = "request"
        self.traced: TracedMessage | None = None
        self.untraced: ExchangeMessage | None = None
        """The message that is shown, while it is not traced."""
        self._node: Node | None = None
        self.shows_records = False
        """Whether the bytes are those of the TLS records of the message, whichever field is selected."""
        self.selection: range | None = None
        """Bytes of the source that is shown, selected with the mouse or by a search."""
        self.lit: list[tuple[int, int, int]] = []
        """Source, start and end of each hit of a search in the message; ascending, all of one length."""

    @property
    def node(self) -> Node | None:
        """The selected field."""
        return self._node

    @node.setter
    def node(self, node: Node | None) -> None:
        self._node, self.selection = node, None

    @property
    def path(self) -> str:
        """The path of the selected field, with the side in front; empty if none is selected."""
        if self.node is None or self.exchange is None:
            return ""
        side = self.exchange.row.kind if self.exchange.is_stored else self.side
        return f"{side}.{self.node.path}" if self.node.path else side

    @property
    def chosen_bytes(self) -> bytes:
        """The selected bytes, else those of the selected field, else the whole message."""
        source = self.source
        if source is None:
            return b""
        if self.selection is not None:
            return source.data[self.selection.start : self.selection.stop]
        if self.node is None or self.traced is None:
            return source.data
        return self.traced.sources[self.node.source].data[self.node.start : self.node.end]

    def choose(self, number: int) -> None:
        """Show another row: its request, or its response if there is no request."""
        self.number = number
        self.exchange = self.capture.exchange(number)
        self._show("request" if self.exchange.request is not None else "response")

    def clear(self) -> None:
        """Show nothing."""
        self.number, self.exchange, self.traced, self.untraced, self.node = None, None, None, None, None

    def flip(self) -> bool:
        """Show the other message of the exchange; return whether there is one."""
        return self.turn("response" if self.side == "request" else "request")

    def turn(self, side: str) -> bool:
        """Show the request or the response; return whether there is one."""
        if self.exchange is None or getattr(self.exchange, side) is None:
            return False
        if side != self.side:
            self._show(side)
        return True

    def _show(self, side: str) -> None:
        self.side = side
        message: ExchangeMessage | None = getattr(self.exchange, side)
        self.traced, self.untraced = None, message
        self.node = None
        self.shows_records = False
        self.lit = []
        if message is not None and (self._waits or not _is_long(message)):
            self.trace_now()

    def trace_now(self) -> None:
        """Trace the message now, however long that takes."""
        if self.untraced is not None:
            self.take(TracedMessage(self.untraced, self.tls_records()))

    def base_offsets(self) -> Places:
        """What the response gives to the records of the shown request."""
        return produced_offsets(self.exchange) if self.exchange is not None and self.side == "request" else {}

    def tls_records(self) -> list[TlsRecord]:
        """The TLS records that the shown message came in; none if that is not encrypted."""
        assert self.number is not None
        return self.capture.frames.tls_records(self.number, of_client=self.side == "request")

    def take(self, traced: TracedMessage) -> None:
        """Show a traced message, unless another message is shown by now."""
        if traced.message is self.untraced:
            traced.base_offsets = self.base_offsets()
            self.traced, self.untraced = traced, None

    @property
    def source(self) -> ByteSource | None:
        """The bytes to show: those that contain the selected field, or those of the TLS records."""
        if self.untraced is not None:
            return ByteSource(0, "frame", self.untraced.data)
        if self.traced is None:
            return None
        if self.shows_records and self.traced.records is not None:
            return self.traced.records.source
        return self.traced.sources[self.node.source if self.node is not None else 0]

    @property
    def records(self) -> RecordSource | None:
        """The TLS records, if their bytes are shown."""
        records = self.traced.records if self.traced is not None else None
        return records if records is not None and self.source is records.source else None

    def next_source(self) -> bool:
        """Show the message's next source of bytes, cyclically; return whether it has more than one. The selected field
        stays where the records it came in are shown; else it is one of the source."""
        if self.traced is None or self.source is None:
            return False
        there = [source.number for source in self.traced.sources if self.traced.roots(source.number)]
        if len(there) < 2:
            return False
        number = there[(there.index(self.source.number) + 1) % len(there)]
        records = self.traced.records
        self.shows_records = records is not None and number == records.source.number
        chain = self.traced.chain(self.node)[1:] if self.node is not None else []
        within = [node for node in chain if node.source == number]
        if self.shows_records:
            self.selection = None
        else:
            self.node = within[-1] if within else self.traced.roots(number)[0]
        return True

    @property
    def first_byte(self) -> int | None:
        """Where the selected field begins in the source that is shown; None if no field is selected."""
        if self.node is None or self.traced is None:
            return None
        if self.records is None or self.node.source == self.records.source.number:
            return self.node.start
        return self.records.first_byte(*self.traced.in_frame(self.node))

    def levels(self, low: int = 0, high: int = 1 << 62) -> list[tuple[int, int, int]]:
        """Return start, end and shade of what is highlighted between `low` and `high`, faintest first: 0 is the field
        itself, 1 its parent, …; for a field in TLS records its own bytes, and its records."""
        if self.traced is None or self.node is None or self.source is None:
            return []
        if self.records is not None and self.node.source != self.records.source.number:
            return list(self.records.marks(*self.traced.in_frame(self.node), low, high))
        chain = [node for node in self.traced.chain(self.node)[1:] if node.source == self.node.source]
        depth = len(chain) - 1
        return [(node.start, node.end, min(depth - n, DEEPEST_SHADE)) for n, node in enumerate(chain)]

    def shades(self, start: int, end: int) -> list[int | None]:
        """Return the shade of each byte from `start` to `end`."""
        shades: list[int | None] = [None] * (end - start)
        for low, high, level in self.levels(start, end):
            for offset in range(max(low, start), min(high, end)):
                shades[offset - start] = level
        return shades

    def is_lit(self, offset: int) -> bool:
        """Return whether a search found the byte at that offset of the source that is shown."""
        if not self.lit or self.records is not None:
            return False
        source = self.node.source if self.node is not None else 0
        at = bisect_right(self.lit, (source, offset, 1 << 62)) - 1
        return at >= 0 and self.lit[at][0] == source and offset < self.lit[at][2]


def _is_long(message: ExchangeMessage) -> bool:
    return len(message.data) > LONG_BYTES or records_in(message) > LONG_RECORDS
