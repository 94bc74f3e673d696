"""A record as people look for it, and those that one exchange carries.

Invariants:
  * records are in the order of the wire, control records included; those of batches that can't be read are missing;
  * they are those of `ExchangeMessage.data`, so what is masked there has no records;
  * key and value are opened when they are first asked for.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from dissector.core.expansion import AS_OBJECT, RUN
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.embedded.values import topic_of
from dissector.protocol.records.batch import Batch, RecordHeader
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import LegacyRecord, data_messages
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError
from dissector.records.values.opened import OpenedValue
from dissector.records.values.opener import ValueOpener
from dissector.records.values.schema_reference import SchemaKey, in_front, in_headers
from dissector.storage.segment import partition_of

BATCH_ROW: Final = "batch"
"""The kind of rows that are entries of a log segment."""
REQUEST_HEADER: Final = "RequestHeader"
PLAIN_OPENER: Final = ValueOpener()
"""Opens what needs no schema."""


class ExchangeRecord:
    """A record that was produced, fetched, or read from a log."""

    def __init__(
        self,
        topic: str,
        partition: int | None,
        offset: int,
        timestamp: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[RecordHeader],
        opener: ValueOpener = PLAIN_OPENER,
        *,
        is_control: bool = False,
        is_produced: bool = False,
    ) -> None:
        self.topic = topic
        """Its name, or its id where no name is known; of a log that of its folder."""
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        """Milliseconds since 1970; None in the oldest format."""
        self.key = key
        self.value = value
        self.headers = headers
        self.is_control = is_control
        """Whether it ends a transaction, or is one of KRaft's own."""
        self.is_produced = is_produced
        """Whether it is in a request: then nobody knows its offset yet, and `offset` counts in its batch."""
        self._opener = opener

    @cached_property
    def _opened(self) -> tuple[OpenedValue, OpenedValue] | None:
        """Key and value of a record that is Kafka's own."""
        return self._opener.open_internal(self.key, self.value, self.topic, is_control=self.is_control)

    @cached_property
    def opened_key(self) -> OpenedValue:
        """What its key is."""
        if self._opened is not None:
            return self._opened[0]
        return self._opener.open(self.key, self.topic, self.headers, is_key=True)

    @cached_property
    def opened_value(self) -> OpenedValue:
        """What its value is."""
        if self._opened is not None:
            return self._opened[1]
        return self._opener.open(self.value, self.topic, self.headers)

    def opened_by(self, opener: ValueOpener) -> "ExchangeRecord":
        """Return the same record, to be opened otherwise."""
        return ExchangeRecord(
            self.topic, self.partition, self.offset, self.timestamp, self.key, self.value, self.headers, opener,
            is_control=self.is_control, is_produced=self.is_produced,
        )  # fmt: skip

    def missing_schemas(self) -> set[SchemaKey]:
        """Return the schemas that a registry has to be asked for before key and value can be opened."""
        found = (
            self._opener.missing(self.key, self.headers, is_key=True),
            self._opener.missing(self.value, self.headers),
        )
        return {each for each in found if each is not None}

    @property
    def schema_id(self) -> str | None:
        """What names the schema of its value: an id, or a GUID."""
        found = in_headers(self.headers, is_key=False) or in_front(self.value or b"")
        return None if found is None else found.key.name


def records_of(exchange: Exchange, opener: ValueOpener = PLAIN_OPENER) -> list[ExchangeRecord]:
    """Return the records that an exchange carries."""
    found: list[ExchangeRecord] = []
    if exchange.is_stored:
        if exchange.fields.kind == BATCH_ROW and exchange.request is not None:
            topic, partition = partition_of(exchange.fields.server)
            found += _RecordCollector(opener).of_field(exchange.request.data, topic, partition)
        return found
    for message in (exchange.request, exchange.response):
        if message is not None and message.layout.body in RECORDS_FIELDS:
            found += _records_of_message(message, opener)
    return found


def _records_of_message(message: ExchangeMessage, opener: ValueOpener) -> list[ExchangeRecord]:
    found: list[ExchangeRecord] = []
    collector = _RecordCollector(opener, is_produced=message.layout.header == REQUEST_HEADER)

    def collect(data: bytes, topic: dict[str, Any], partition: dict[str, Any]) -> dict[str, Any]:
        name = topic_of(topic, message.context) or str(topic.get("topic_id"))
        number = partition.get("partition_index", partition.get("index"))
        found.extend(collector.of_field(data, name, number))
        return {}

    message.body_with(collect)
    return found


class _RecordCollector:
    """Reads the `records` fields of one message, which share a budget."""

    def __init__(self, opener: ValueOpener, *, is_produced: bool = False) -> None:
        self._opener = opener
        self._is_produced = is_produced
        self._budget: DecompressionBudget = frame_budget()

    def of_field(self, data: bytes, topic: str, partition: int | None) -> Iterator[ExchangeRecord]:
        """Yield the records of a field."""
        for part in split_entries(data):
            raw = data[part.start : part.end]
            if part.kind is RecordsEntryKind.BATCH:
                yield from self._of_batch(Batch.read(raw), topic, partition)
            elif part.kind is RecordsEntryKind.MESSAGE:
                yield from self._of_message(raw, topic, partition)

    def _of_batch(self, batch: Batch, topic: str, partition: int | None) -> Iterator[ExchangeRecord]:
        if batch.is_masked:
            return
        try:
            records = batch.records(self._budget)
        except (DecompressionError, WireError):  # the tree and the findings say why
            return
        RUN.take_read(len(batch.section), len(records), AS_OBJECT)
        is_control = batch.is_control
        for offset, timestamp, key, value, headers in records:
            yield ExchangeRecord(
                topic, partition, offset, timestamp, key, value, headers, self._opener, is_control=is_control,
                is_produced=self._is_produced,
            )  # fmt: skip

    def _of_message(self, raw: bytes, topic: str, partition: int | None) -> Iterator[ExchangeRecord]:
        try:
            messages = list(data_messages(LegacyRecord.read(raw), self._budget))
        except (DecompressionError, WireError):
            return
        for each in messages:
            yield ExchangeRecord(
                topic, partition, each.offset, each.timestamp, each.key, each.value, (), self._opener,
                is_produced=self._is_produced,
            )  # fmt: skip
