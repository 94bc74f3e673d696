"""What the main screen shows, without a screen: the chosen exchange, side, field; which bytes belong to what.

Invariants:
  * the chosen field is one of the chosen message's tree, or None;
  * `levels` names only bytes of the source that the bytes pane shows.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from dissector.capture_session import Capture
from dissector.exchange.info_column import records_in
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.tree import ByteSource, Node

DEEPEST_SHADE = 3
"""Ancestors farther up share one shade."""
LONG_BYTES, LONG_RECORDS = 1 << 15, 256
"""A message with more takes so long to make a tree of that a screen would stand still."""


@dataclass
class TracedMessage:
    """One message, looked at."""

    message: ExchangeMessage
    parents: dict[int, Node] = field(default_factory=dict)
    """The parent of each node, by the node's id."""

    def __post_init__(self) -> None:
        for node in self.message.tree.walk():
            for child in node.children:
                self.parents[id(child)] = node

    def has(self, node: Node) -> bool:
        """Whether a node is of this message."""
        return node is self.message.tree or id(node) in self.parents

    def chain(self, node: Node) -> list[Node]:
        """From the root down to `node`."""
        chain = [node]
        while (parent := self.parents.get(id(chain[-1]))) is not None:
            chain.append(parent)
        return chain[::-1]

    def node_at(self, source: int, offset: int) -> Node | None:
        """The leaf that a byte of a source belongs to."""
        level = [self.message.tree] if source == 0 else self.roots(source)
        found: Node | None = None
        while True:
            inside = next((n for n in level if n.source == source and n.start <= offset < n.end), None)
            if inside is None:
                return found
            found, level = inside, inside.children

    def roots(self, source: int) -> list[Node]:
        """The topmost nodes of a source; of the frame, those below the root."""
        if source == 0:
            return self.message.tree.children
        nodes = self.message.tree.walk()
        return [n for n in nodes if n.source == source and self.parents[id(n)].source != source]


class ExchangeModel:
    """The state of the main screen."""

    def __init__(self, capture: Capture, *, waits: bool = True) -> None:
        """Unless it `waits`, whoever shows it looks at long messages beside the screen, and hands over the look."""
        self.capture = capture
        self._waits = waits
        self.number: int | None = None
        self.exchange: Exchange | None = None
        self.side = "request"
        self.look: TracedMessage | None = None
        self.unread: ExchangeMessage | None = None
        """The message that is shown, where no look at it was had yet."""
        self._node: Node | None = None
        self.selection: range | None = None
        """Bytes of the source that is shown, selected with the mouse or by a search."""
        self.lit: list[tuple[int, int, int]] = []
        """Source, start and end of what a search found in the message; ascending, of one length."""

    @property
    def node(self) -> Node | None:
        """The chosen field."""
        return self._node

    @node.setter
    def node(self, node: Node | None) -> None:
        self._node, self.selection = node, None

    @property
    def path(self) -> str:
        """The whole path of the chosen field, the side first; empty where none is chosen."""
        if self.node is None or self.exchange is None:
            return ""
        side = self.exchange.row.kind if self.exchange.is_stored else self.side
        return f"{side}.{self.node.path}" if self.node.path else side

    @property
    def chosen_bytes(self) -> bytes:
        """The bytes that are selected, those of the chosen field, or all of the message."""
        source = self.source
        if source is None:
            return b""
        if self.selection is not None:
            return source.data[self.selection.start : self.selection.stop]
        return source.data if self.node is None else source.data[self.node.start : self.node.end]

    def choose(self, number: int) -> None:
        """Show another row; its request, or its response where that is all there is."""
        self.number = number
        self.exchange = self.capture.exchange(number)
        self._show("request" if self.exchange.request is not None else "response")

    def clear(self) -> None:
        """Show nothing."""
        self.number, self.exchange, self.look, self.unread, self.node = None, None, None, None, None

    def flip(self) -> bool:
        """Request to response and back; whether the other one is there."""
        return self.turn("response" if self.side == "request" else "request")

    def turn(self, side: str) -> bool:
        """Show the request or the response; whether it is there."""
        if self.exchange is None or getattr(self.exchange, side) is None:
            return False
        if side != self.side:
            self._show(side)
        return True

    def _show(self, side: str) -> None:
        self.side = side
        message: ExchangeMessage | None = getattr(self.exchange, side)
        self.look, self.unread = None, message
        self.node = None
        self.lit = []
        if message is not None and (self._waits or not _is_long(message)):
            self.read_on()

    def read_on(self) -> None:
        """Look at the message now, however long that takes."""
        if self.unread is not None:
            self.take(TracedMessage(self.unread))

    def take(self, look: TracedMessage) -> None:
        """Have a look at the message; nothing happens where it is another one that is shown by now."""
        if look.message is self.unread:
            self.look, self.unread = look, None

    @property
    def source(self) -> ByteSource | None:
        """The bytes to show: those that the chosen field is in."""
        if self.unread is not None:
            return ByteSource(0, "frame", self.unread.data)
        if self.look is None:
            return None
        return self.look.message.sources[self.node.source if self.node is not None else 0]

    def next_source(self) -> Node | None:
        """The topmost field of the message's next source of bytes, round and round; None where there is but one."""
        if self.look is None or len(self.look.message.sources) < 2:
            return None
        number = self.source.number if self.source is not None else 0
        count = len(self.look.message.sources)
        following = [(number + step) % count for step in range(1, count)]
        return next((roots[0] for at in following if (roots := self.look.roots(at))), None)

    def levels(self) -> list[tuple[int, int, int]]:
        """Start, end and shade of what is highlighted, faintest first: 0 is the field itself, 1 its parent, …"""
        if self.look is None or self.node is None:
            return []
        chain = [node for node in self.look.chain(self.node)[1:] if node.source == self.node.source]
        depth = len(chain) - 1
        return [(node.start, node.end, min(depth - n, DEEPEST_SHADE)) for n, node in enumerate(chain)]

    def shades(self, start: int, end: int) -> list[int | None]:
        """The shade of each byte from `start` to `end`."""
        shades: list[int | None] = [None] * (end - start)
        for low, high, level in self.levels():
            for offset in range(max(low, start), min(high, end)):
                shades[offset - start] = level
        return shades

    def is_lit(self, offset: int) -> bool:
        """Whether a search found the byte at that offset of the source that is shown."""
        source = self.node.source if self.node is not None else 0
        at = bisect_right(self.lit, (source, offset, 1 << 62)) - 1
        return at >= 0 and self.lit[at][0] == source and offset < self.lit[at][2]


def _is_long(message: ExchangeMessage) -> bool:
    return len(message.data) > LONG_BYTES or records_in(message) > LONG_RECORDS
