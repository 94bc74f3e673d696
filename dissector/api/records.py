"""Records, as programs see them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from dissector.analysis.record_list import CarriedRecord
from dissector.core.finding import Finding
from dissector.records.record import ExchangeRecord

if TYPE_CHECKING:
    from dissector.api.exchange import Exchange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was produced, fetched, or read from a log.

    >>> record = next(capture.records("api == Produce"))
    >>> record.topic, record.partition, record.key, record.value[:8], record.exchange.number
    ('java-orders', 1, b'customer-0', b'order 0:', 9)
    """

    topic: str | None
    """The name of the topic, or its id if the capture has no name; in a log, from the name of its folder."""
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
    _carried: ExchangeRecord = field(repr=False, compare=False)

    @property
    def timestamp(self) -> datetime | None:
        """The same time in UTC; None if there is none, or if it is outside the range of `datetime`."""
        try:
            return None if self.timestamp_ms is None else _EPOCH + timedelta(milliseconds=self.timestamp_ms)
        except OverflowError:
            return None

    @property
    def key_decoded(self) -> Any:
        """The key, decoded as for `value_decoded`."""
        return self._carried.opened_key.value

    @property
    def value_decoded(self) -> Any:
        """The decoded value: JSON, Avro and Protobuf as dicts, lists and their members; text as str; anything else as
        bytes. Avro and Protobuf need schemas, which are passed to `open`.

        >>> record = next(capture.records("api == Produce"))
        >>> record.value_decoded[:8], record.value_format
        ('order 0:', 'text')
        """
        return self._carried.opened_value.value

    @property
    def value_format(self) -> str:
        """``json``, ``avro``, ``protobuf``, ``text``, ``bytes``, ``null``; ``kafka`` in Kafka's internal topics."""
        return self._carried.opened_value.form

    @property
    def value_schema(self) -> str | None:
        """The schema that the value names or with which it was read: ``schema 7 shop.Order``."""
        return self._carried.opened_value.schema or None

    @property
    def value_finding(self) -> Finding | None:
        """Why the value can't be decoded; None if it can."""
        return self._carried.opened_value.problem


def api_records(found: Iterator[CarriedRecord], exchange_at: "Callable[[int], Exchange]") -> Iterator[Record]:
    """Yield records of a capture with the exchanges that carried them, each decoded once."""
    row, exchange = -1, None
    for each in found:
        if each.row != row or exchange is None:
            row, exchange = each.row, exchange_at(each.row)
        it = each.record
        named = tuple((header.key, header.value) for header in it.headers)
        yield Record(
            it.topic or None, it.partition, it.offset, it.timestamp, it.key, it.value, named, exchange, it
        )  # fmt: skip
