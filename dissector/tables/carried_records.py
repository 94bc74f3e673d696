"""The records of an exchange or of a log entry, batch by batch, with the properties of each batch.

Invariants:
  * records are in the order of the wire, control batches included;
  * an unreadable batch has no records, and the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.records.batch import (
    HEADER,
    NO_PRODUCER,
    NO_SEQUENCE,
    SEQUENCES,
    Batch,
    Record,
    RecordHeader,
    read_records,
)
from dissector.protocol.records.compression import CODEC_MASK, DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import LOG_OVERHEAD
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError
from dissector.storage.segment import partition_of

MASKED: Final = "masked, as it may hold a secret"
Body = Mapping[str, Any]


RecordFields = tuple[int, int | None, bytes | None, bytes | None, Sequence[RecordHeader]]
"""The fields of `batch.Record`; the timestamp may be missing."""


class BatchHead(NamedTuple):
    """What else the header of a batch of magic 2 says, and of its bytes."""

    last_offset: int
    size: int
    """Bytes, header included."""
    timestamp_type: str
    first_timestamp: int
    """The header's base timestamp, milliseconds since 1970 as those of records."""
    max_timestamp: int
    transactional: bool
    crc_valid: bool
    record_count: int
    """As the header says."""
    uncompressed_size: int | None
    """Bytes that it would have without compression, header included; None if it can't be decompressed."""
    error: str | None
    """Why its records can't be read."""


class CarriedRecords(NamedTuple):
    """The records of a batch, or a message of magic 0 or 1, which has no producer."""

    topic: str
    """Its name, or its id if the name is unknown."""
    partition: int | None
    records: Sequence[RecordFields]
    """A message has no headers; one of magic 0 has no timestamp either."""
    base_offset: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_SEQUENCE
    codec: str = "none"
    """Of the batch or of the wrapper message."""
    control: bool = False
    head: BatchHead | None = None
    """None for a message."""

    @property
    def sequences(self) -> list[int]:
        """The sequence numbers of its records."""
        first = self.base_sequence
        if first < 0:
            return [NO_SEQUENCE] * len(self.records)
        return [(first + record[0] - self.base_offset) % SEQUENCES for record in self.records]


class LogPartition(NamedTuple):
    """The partition of a log that holds records."""

    topic: str
    partition: int | None


def has_records_field(layout: MessageLayout) -> bool:
    """Return whether messages of a layout have a `records` field."""
    return layout.body in RECORDS_FIELDS


def records_of_entry(file: str, body: Body) -> Iterator[CarriedRecords]:
    """Yield the records of an entry of a log segment; the segment's folder names the partition."""
    yield from records_of_object(body, LogPartition(*partition_of(file)))


def records_of_batch(batch: Batch, budget: DecompressionBudget, log: LogPartition) -> CarriedRecords:
    """Return a batch of magic 2 with its records."""
    plain: bytes | None = None
    records: list[Record] = []
    error: str | None = MASKED if batch.is_masked else None
    if error is None:
        try:
            plain = batch.decompressed(budget)
            records = read_records(plain, batch, budget)
        except (DecompressionError, WireError) as unread:
            error = str(unread)
    return CarriedRecords(
        *log, records, batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence,
        batch.compression, batch.is_control, _head(batch, None if plain is None else len(plain), error),
    )  # fmt: skip


def records_of_object(batch: Body, log: LogPartition) -> Iterator[CarriedRecords]:
    """Yield the records of a JSON object: a batch of magic 2, an older message, or a wrapper of such messages."""
    if batch.get("magic") != 2:
        yield from _of_messages(batch, log, batch.get("compression", "none"))
    elif "records" in batch:
        records = [_record_fields(record) for record in batch["records"] or ()]
        yield CarriedRecords(
            *log, records, batch["base_offset"], batch["producer_id"],
            batch["producer_epoch"], batch["base_sequence"], batch["compression"], batch["control"],
            _head_of_object(batch),
        )  # fmt: skip


def _head(batch: Batch, plain_size: int | None, error: str | None) -> BatchHead:
    return BatchHead(
        batch.base_offset + batch.last_offset_delta, len(batch.data), batch.timestamp_type, batch.base_timestamp,
        batch.max_timestamp, batch.is_transactional, batch.crc_valid, batch.records_count, _uncompressed(plain_size),
        error,
    )  # fmt: skip


def _head_of_object(batch: Body) -> BatchHead:
    return BatchHead(
        batch["base_offset"] + batch["last_offset_delta"], LOG_OVERHEAD + batch["batch_length"],
        batch["timestamp_type"], batch["base_timestamp"], batch["max_timestamp"], batch["transactional"],
        batch["crc_valid"], batch["records_count"], _uncompressed(_plain_size(batch)),
        MASKED if "masked" in batch else batch.get("error"),
    )  # fmt: skip


def _uncompressed(plain_size: int | None) -> int | None:
    return None if plain_size is None else HEADER.size + plain_size


def _plain_size(batch: Body) -> int | None:
    """Return the size of the decompressed section of a JSON object."""
    if "masked" in batch:
        return None
    if not batch["attributes"] & CODEC_MASK:
        return int(LOG_OVERHEAD + batch["batch_length"] - HEADER.size)
    try:
        return len(frame_budget().decompressed(batch["attributes"] & CODEC_MASK, bytes.fromhex(batch["compressed"])))
    except DecompressionError:
        return None


def _of_messages(message: Body, log: LogPartition, codec: str) -> Iterator[CarriedRecords]:
    if "messages" in message:
        for inner in message["messages"] or ():
            yield from _of_messages(inner, log, codec)
    elif "value" in message:
        yield CarriedRecords(*log, [_record_fields(message)], message["offset"], codec=codec)


def _record_fields(record: Body) -> RecordFields:
    headers = [RecordHeader(each["key"], each["value"]) for each in record.get("headers", ())]
    return record["offset"], record.get("timestamp"), record["key"], record["value"], headers
