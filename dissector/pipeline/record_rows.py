"""Rows of the table `records`: records that an exchange carried, or that are in a log."""

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from dissector.exchange.model import ExchangeMessage
from dissector.exchange.to_json import Body
from dissector.protocol.message import Values
from dissector.protocol.records.batch import RecordHeader
from dissector.tables.carried_records import BatchHead, CarriedRecords, has_records_field
from dissector.tables.packing import Packer
from dissector.tables.row_batches import Cells, RowGroup

_BIGINT_END: Final = 1 << 63
RecordColumns = dict[str, Sequence[Any]]
Contents = Sequence[bytes | None]


def body_packer(carried: list[CarriedRecords], *, kept: bool) -> Body:
    """Return a function that returns bodies without records, which go to `carried`. `kept` says whether their bytes are
    in the body."""

    def body(message: ExchangeMessage) -> Values:
        return (
            message.body_with(Packer(message, carried, kept=kept))
            if has_records_field(message.layout)
            else message.decoded_body
        )

    return body


def record_rows(batch: CarriedRecords, common: Cells, *, kept: bool) -> RowGroup:
    """Return the rows of a batch. All share the cells in `common`. Contents that are not `kept` become sizes and
    digests."""
    shared = common | {
        "topic": batch.topic or None, "partition": batch.partition, "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch, "codec": batch.codec, "control": batch.control,
    }  # fmt: skip
    size = sum(len(record[2] or b"") + len(record[3] or b"") for record in batch.records) if kept else 0
    return RowGroup(shared, len(batch.records), size, batch, _contents if kept else _digests)


def batch_row(batch: CarriedRecords, head: BatchHead, common: Cells) -> Cells:
    """Return the row of a batch, with the cells in `common`."""
    [last_offset] = _bigints([head.last_offset])
    return common | {
        "topic": batch.topic or None, "partition": batch.partition, "base_offset": batch.base_offset,
        "last_offset": last_offset, "record_count": head.record_count, "size": head.size,
        "uncompressed_size": head.uncompressed_size, "codec": batch.codec,
        "timestamp_type": head.timestamp_type, "first_timestamp_ms": head.first_timestamp,
        "max_timestamp_ms": head.max_timestamp, "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch, "base_sequence": batch.base_sequence,
        "transactional": head.transactional, "control": batch.control, "crc_valid": head.crc_valid,
        "error": head.error,
    }  # fmt: skip


def _contents(batches: Sequence[CarriedRecords]) -> RecordColumns:
    columns, keys, values, headers = _columns(batches)
    return columns | {"key": keys, "value": values, "headers": headers}


def _digests(batches: Sequence[CarriedRecords]) -> RecordColumns:
    columns, keys, values, headers = _columns(batches)
    header_names = [[(header.key, None) for header in of_record] for of_record in headers]
    return columns | {"key_sha256": sha256(keys), "value_sha256": sha256(values), "headers": header_names}


def _columns(
    batches: Sequence[CarriedRecords],
) -> tuple[RecordColumns, Contents, Contents, Sequence[Sequence[RecordHeader]]]:
    """Return the columns that all records have, and the records' keys, values and headers."""
    records = chain.from_iterable(batch.records for batch in batches)
    offsets, times, keys, values, headers = zip(*records, strict=True)
    columns: RecordColumns = {
        "offset": _bigints(offsets), "timestamp_ms": _bigints(times), "key_size": _sizes(keys),
        "value_size": _sizes(values), "sequence": list(chain.from_iterable(batch.sequences for batch in batches)),
    }  # fmt: skip
    return columns, keys, values, headers


def _bigints(values: Sequence[int | None]) -> list[int | None]:
    """Replace numbers that do not fit into 64 bits, as those of damaged records may not, by None."""
    return [value if value is not None and -_BIGINT_END <= value < _BIGINT_END else None for value in values]


def _sizes(contents: Contents) -> list[int | None]:
    return [None if content is None else len(content) for content in contents]


def sha256(contents: Contents) -> list[bytes | None]:
    """Return the digest of each content; None where there is none."""
    return [None if content is None else hashlib.sha256(content).digest() for content in contents]
