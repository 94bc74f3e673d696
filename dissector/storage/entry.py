"""An entry of one of Kafka's own files: the fields of its row, and its message, which has no frame around it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from dissector.capture.errors import DamagedRange as Damaged
from dissector.core.finding import Finding, Severity
from dissector.core.times import MILLISECOND
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.message import Decoded, Traced, Values
from dissector.protocol.message_layout import UNFRAMED
from dissector.protocol.records.span_cursor import SpanCursor
from dissector.protocol.tree import ByteSource, Node

LATEST: Final = (1 << 63) - 1
"""Nanoseconds since 1970 that rows can have."""


class EntryPosition(NamedTuple):
    """Where an entry is in its file."""

    start: int
    end: int


@dataclass
class StoredMessage(ExchangeMessage):
    """Bytes of a file. `values` and `grow` decode them."""

    values: Callable[[], Values] = field(kw_only=True)
    grow: Callable[[], Traced] = field(kw_only=True)

    def _decode(self) -> Decoded:
        return Decoded({}, self.values())

    @cached_property
    def traced(self) -> Traced:
        return self.grow()


@dataclass
class LogEntry:
    """A decoded entry."""

    message: StoredMessage
    version: int | None
    info: str
    findings: list[Finding] = field(default_factory=list)


class KafkaFile(Protocol):
    """A recognized file of Kafka."""

    kind: str
    """Kind of its rows."""
    damage: Damaged | None
    """What ended the search for its entries early."""

    def places(self) -> Iterator[EntryPosition]:
        """Yield the positions of its entries, in order."""

    def entry(self, data: bytes, start: int) -> LogEntry:
        """Decode the entry with the bytes `data` at offset `start`. They may be fewer than it had, or any others, if
        the file became shorter or was written again: `changed_entry`."""


def stored_message(
    data: bytes, timestamp: int | None, values: Callable[[], Values], grow: Callable[[], Traced]
) -> StoredMessage:
    """Return a message with a timestamp in milliseconds; None, or a time before 1970, counts as the epoch."""
    time_ns = min(max(timestamp or 0, 0) * MILLISECOND, LATEST)
    return StoredMessage(time_ns, len(data), data, len(data), UNFRAMED, values=values, grow=grow)


def changed_entry(kind: str, data: bytes, start: int) -> LogEntry:
    """Return what is left of an entry whose file became shorter or was written again since the entry was found."""

    def grow() -> Traced:
        root = Node(kind, "", "STRUCT", 0, len(data))
        SpanCursor(data, 0, len(data), 0).rest(root)
        return Traced(root, [ByteSource(0, kind, data)], [])

    words = f"the file became shorter or was written again: these {len(data):,} bytes are no {kind} any more"
    message = stored_message(data, None, lambda: {"position": start, "rest": data}, grow)
    return LogEntry(message, None, words, [Finding("file-truncated", Severity.WARNING, words)])
