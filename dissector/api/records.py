"""Records, as programs see them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from dissector.analysis.records import CarriedRecords, has_records_field, records_of_entry
from dissector.exchange.model import STORED

if TYPE_CHECKING:
    from dissector.api.exchange import Exchange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was produced or fetched, or is in a log.

    >>> record = next(capture.records("api == Produce"))
    >>> record.topic, record.partition, record.key, record.value[:8], record.exchange.number
    ('java-orders', 1, b'customer-0', b'order 0:', 9)
    """

    topic: str | None
    """The name of the topic, or its id if no name was seen; of a log, from its folder."""
    partition: int | None
    offset: int
    """In a Produce it is counted from 0 in each batch."""
    timestamp_ms: int | None
    """Milliseconds since 1970 UTC; None in the oldest format (magic 0)."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    exchange: "Exchange" = field(repr=False, compare=False)
    """The exchange that carried it."""

    @property
    def timestamp(self) -> datetime | None:
        """The same time in UTC; None if there is none, or no calendar has it."""
        try:
            return None if self.timestamp_ms is None else _EPOCH + timedelta(milliseconds=self.timestamp_ms)
        except OverflowError:
            return None


def records_of(exchange: "Exchange") -> Iterator[Record]:
    """Yield the records of an exchange, in the order of the wire; those of batches that can't be read are missing."""
    for batch in _batches(exchange):
        for offset, timestamp, key, value, headers in batch.records:
            named = tuple((header.key, header.value) for header in headers)
            yield Record(batch.topic or None, batch.partition, offset, timestamp, key, value, named, exchange)


def _batches(exchange: "Exchange") -> Iterator[CarriedRecords]:
    from dissector.tables.packing import Packer

    if exchange.kind in STORED:
        yield from records_of_entry(exchange.server, exchange.json())
        return
    for message in (exchange.request, exchange.response):
        if message is not None and has_records_field(message):
            carried: list[CarriedRecords] = []
            message.body_with(Packer(message, carried, kept=False))
            yield from carried
