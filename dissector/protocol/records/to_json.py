"""A `records` field as the object of our JSON; `from_json` is the inverse.

Names are Kafka's; `crc_valid`, `compression`, `control` and others interpret the fields beside them. A compressed
section has its original bytes, too, as no two compressors give the same.
"""

from typing import Any

from dissector.core import limits
from dissector.protocol.records.batch import Batch, read_records
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.wire import WireError

Object = dict[str, Any]


def frame_budget(bounds: limits.Limits = limits.DEFAULT) -> DecompressionBudget:
    """Return the decompression budget of one frame."""
    return DecompressionBudget(bounds.decompressed_size, bounds.decompressed_frame_size, bounds)


def records_object(data: bytes, budget: DecompressionBudget | None = None) -> Object:
    """Return a `records` field: its size, its batches and messages, and bytes that are neither."""
    budget = budget or frame_budget()
    value: Object = {"size": len(data), "batches": []}
    for part in split_entries(data):
        raw = data[part.start : part.end]
        if part.kind is RecordsEntryKind.BATCH:
            value["batches"].append(_batch(Batch.read(raw), budget))
        elif part.kind is RecordsEntryKind.MESSAGE:
            value["batches"].append(message_object(raw, budget))
        else:
            value[part.kind.value] = rest_object(raw)
    return value


def rest_object(raw: bytes) -> Object:
    """Return bytes that are not a complete batch."""
    return {"size": len(raw), "data": raw.hex()}


def _batch(batch: Batch, budget: DecompressionBudget) -> Object:
    value = head_object(batch)
    if batch.is_masked:
        value |= masked_object(batch)
        return value
    try:
        records = record_objects(batch, budget)
    except (DecompressionError, WireError) as error:
        value |= unread_object(batch, str(error))
        return value
    if batch.codec:
        value |= section_object(batch)
    value["records"] = records
    return value


def section_object(batch: Batch) -> Object:
    """Return the bytes of a batch's record section."""
    return {"compressed" if batch.codec else "data": batch.section.hex()}


def masked_object(batch: Batch) -> Object:
    """Return the fields in place of records, for a batch whose section is masked."""
    return section_object(batch) | {"records": None, "masked": len(batch.section)}


def unread_object(batch: Batch, error: str) -> Object:
    """Return the fields in place of records, for a batch whose records can't be read."""
    return section_object(batch) | {"records": None, "error": error}


def head_object(batch: Batch) -> Object:
    """Return a batch's header and its interpretation."""
    return {
        "base_offset": batch.base_offset,
        "batch_length": batch.batch_length,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "crc": batch.crc,
        "crc_valid": batch.crc_valid,
        "attributes": batch.attributes,
        "compression": batch.compression,
        "timestamp_type": batch.timestamp_type,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "last_offset_delta": batch.last_offset_delta,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "records_count": batch.records_count,
    }


def record_objects(batch: Batch, budget: DecompressionBudget) -> list[Object]:
    """Return the records of a batch. Raises `DecompressionError` or `WireError`."""
    plain = batch.decompressed(budget)
    objects: list[Object] = [
        {
            "offset": offset,
            "timestamp": timestamp,
            "key": key,
            "value": value,
            "headers": [{"key": name, "value": content} for name, content in headers] if headers else [],
        }
        for offset, timestamp, key, value, headers in read_records(plain, batch, budget)
    ]
    if batch.is_append_time:
        # All records have the broker's timestamp; keep the delta on the wire, which encoding needs.
        created = read_records(plain, batch._replace(attributes=0, base_timestamp=0))
        for value, record in zip(objects, created, strict=True):
            value["timestamp_delta"] = record.timestamp
    return objects


def message_object(raw: bytes, budget: DecompressionBudget) -> Object:
    """Return a message of magic 0 or 1, or a wrapper of such messages."""
    try:
        message = LegacyRecord.read(raw)
    except WireError as error:
        return {"offset": int.from_bytes(raw[:8], "big", signed=True), "error": str(error), "data": raw.hex()}
    value = _message_fields(message)
    if message.codec:
        value["compressed"] = (message.value or b"").hex()
        try:
            value["messages"] = message_objects(message, budget)
        except (DecompressionError, WireError) as error:
            value |= {"messages": None, "error": str(error)}
    return value


def message_objects(wrapper: LegacyRecord, budget: DecompressionBudget) -> list[Object]:
    """Return the messages of a wrapper. Raises `DecompressionError` or `WireError`."""
    return [_message_fields(inner) for inner in wrapper.inside(budget)]


def _message_fields(message: LegacyRecord) -> Object:
    value: Object = {
        "offset": message.offset,
        "message_size": message.message_size,
        "crc": message.crc,
        "crc_valid": message.crc_valid,
        "magic": message.magic,
        "attributes": message.attributes,
        "compression": message.compression,
    }
    if message.timestamp is not None:
        value |= {"timestamp_type": message.timestamp_type, "timestamp": message.timestamp}
    return value | {"key": message.key} | ({} if message.codec else {"value": message.value})
