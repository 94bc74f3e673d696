"""The records that an exchange carries, or an entry of a log: batch by batch, with what each says of its records.

Invariants:
  * records come in the order of the wire, those of control batches among them;
  * of a batch that can't be read there is none: its body says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.records.batch import Batch, Record, RecordHeader
from dissector.storage.segment import partition_of

NO_SEQUENCE: Final = -1
NO_PRODUCER: Final = -1
"""The id and the epoch of a producer that is not idempotent (KIP-98)."""
_SEQUENCES: Final = 1 << 31
"""Behind the last of which they begin again at 0."""
Body = Mapping[str, Any]


RecordFields = tuple[int, int | None, bytes | None, bytes | None, Sequence[RecordHeader]]
"""A record as `batch.Record` has it, the time not always."""


class CarriedRecords(NamedTuple):
    """Records that stand together: those of a batch, or a message of before 0.11, which has no producer."""

    topic: str
    """Its name, or its id where nothing tells the name."""
    partition: int | None
    records: Sequence[RecordFields]
    """A message has no headers; one of magic 0 has no timestamp either."""
    base_offset: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_SEQUENCE
    codec: str = "none"
    """Of the batch, or of the wrapper."""
    control: bool = False

    @property
    def sequences(self) -> list[int]:
        """Those of its records: the first one's, and their places behind it."""
        first = self.base_sequence
        if first < 0:
            return [NO_SEQUENCE] * len(self.records)
        return [(first + record[0] - self.base_offset) % _SEQUENCES for record in self.records]


class LogPartition(NamedTuple):
    """Where records stand."""

    topic: str
    partition: int | None


def has_records_field(message: ExchangeMessage) -> bool:
    """Whether a message has a field for records."""
    return message.shape.body in RECORDS_FIELDS


def records_of_entry(file: str, body: Body) -> Iterator[CarriedRecords]:
    """The records of an entry of a log segment, whose folder says which log it is."""
    yield from records_of_object(body, LogPartition(*partition_of(file)))


def records_of_batch(batch: Batch, records: list[Record], log: LogPartition) -> Iterator[CarriedRecords]:
    """The records of a batch of magic 2, which were read."""
    if records:
        yield CarriedRecords(
            *log, records, batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence,
            batch.compression, batch.is_control,
        )  # fmt: skip


def records_of_object(batch: Body, log: LogPartition) -> Iterator[CarriedRecords]:
    """The records of a batch of magic 2, a message of before it, or a wrapper of such messages, as JSON has it."""
    if batch.get("magic") != 2:
        yield from _of_messages(batch, log, batch.get("compression", "none"))
    elif batch["records"]:
        yield CarriedRecords(
            *log, [_each(record) for record in batch["records"]], batch["base_offset"], batch["producer_id"],
            batch["producer_epoch"], batch["base_sequence"], batch["compression"], batch["control"],
        )  # fmt: skip


def _of_messages(message: Body, log: LogPartition, codec: str) -> Iterator[CarriedRecords]:
    if "messages" in message:
        for inner in message["messages"] or ():
            yield from _of_messages(inner, log, codec)
    elif "value" in message:
        yield CarriedRecords(*log, [_each(message)], message["offset"], codec=codec)


def _each(record: Body) -> RecordFields:
    headers = [RecordHeader(each["key"], each["value"]) for each in record.get("headers", ())]
    return record["offset"], record.get("timestamp"), record["key"], record["value"], headers
