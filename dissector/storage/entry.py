"""One entry of a file of Kafka's, looked at: what a row says of it, and its message, which no frame surrounds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from dissector.capture.errors import FilePosition as Damaged
from dissector.core.finding import Finding
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.message import UNFRAMED, Decoded, Traced, Values

MILLISECOND: Final = 1_000_000
LATEST: Final = (1 << 63) - 1
"""Nanoseconds since 1970 that rows can have."""


class EntryPosition(NamedTuple):
    """Where an entry is in its file."""

    start: int
    end: int


@dataclass
class StoredMessage(ExchangeMessage):
    """Bytes of a file. `values` and `grow` say what they mean."""

    values: Callable[[], Values] = field(kw_only=True)
    grow: Callable[[], Traced] = field(kw_only=True)

    def _decode(self) -> Decoded:
        return Decoded({}, self.values())

    @cached_property
    def traced(self) -> Traced:
        return self.grow()


@dataclass
class LogEntry:
    """What is to be shown of an entry."""

    message: StoredMessage
    version: int | None
    info: str
    findings: list[Finding] = field(default_factory=list)


class KafkaFile(Protocol):
    """A file, recognised."""

    kind: str
    """Of its rows."""
    damage: Damaged | None
    """What stopped the reading of its places early."""

    def places(self) -> Iterator[EntryPosition]:
        """Where its entries are, in order."""

    def entry(self, data: bytes, start: int) -> LogEntry:
        """The entry that `data` is, which stands at `start`."""


def stored_message(
    data: bytes, timestamp: int | None, values: Callable[[], Values], grow: Callable[[], Traced]
) -> StoredMessage:
    """A message of a time in milliseconds; None, or one before 1970, counts as the epoch."""
    time_ns = min(max(timestamp or 0, 0) * MILLISECOND, LATEST)
    return StoredMessage(time_ns, len(data), data, len(data), UNFRAMED, values=values, grow=grow)
