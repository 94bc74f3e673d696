"""`records` fields by the names of Apache's getters: what its reader found (`truth_in`), and ours (`batches_of`).

A batch of magic 0 or 1 is one message, a wrapper with all that it holds; of its header there is less to compare.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from dissector.protocol.records.batch import Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import LegacyRecord, data_messages
from dissector.protocol.records.to_json import frame_budget

NO_TIMESTAMP = -1


def truth_in(truth: Any) -> Iterator[tuple[bytes, list[dict[str, Any]]]]:
    """Every `records` field of a message that is not null: its bytes, and the batches that Apache found in them."""
    if isinstance(truth, list):
        for each in truth:
            yield from truth_in(each)
    elif isinstance(truth, dict):
        if truth.keys() == {"bytes", "batches"}:
            batches = [batch | {"records": [*map(_decoded, batch["records"])]} for batch in truth["batches"]]
            yield b64decode(truth["bytes"]), batches
        else:
            yield from truth_in(list(truth.values()))


def _decoded(record: dict[str, Any]) -> dict[str, Any]:
    headers = [header | {"value": _blob(header["value"])} for header in record["headers"]]
    return record | {"key": _blob(record["key"]), "value": _blob(record["value"]), "headers": headers}


def _blob(truth: str | None) -> bytes | None:
    return None if truth is None else b64decode(truth)


def batches_of(raw: bytes) -> Iterator[dict[str, Any]]:
    """What our reader finds in the bytes of a `records` field, which hold nothing but whole batches."""
    for part in split_entries(raw):
        data = raw[part.start : part.end]
        assert part.kind in (RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE)
        yield _batch(Batch.read(data)) if part.kind is RecordsEntryKind.BATCH else _message(LegacyRecord.read(data))


def _batch(batch: Batch) -> dict[str, Any]:
    return {
        "magic": batch.magic,
        "isValid": batch.crc_valid,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.base_offset + batch.last_offset_delta,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "isTransactional": batch.is_transactional,
        "isControlBatch": batch.is_control,
        "compression": batch.compression,
        "timestampType": batch.timestamp_type,
        "records": [
            record._asdict() | {"headers": [header._asdict() for header in record.headers]}
            for record in batch.records(frame_budget())
        ],
    }


def _message(message: LegacyRecord) -> dict[str, Any]:
    return {
        "magic": message.magic,
        "isValid": message.crc_valid,
        "compression": message.compression,
        "timestampType": message.timestamp_type or "NoTimestampType",
        "records": [
            {
                "offset": each.offset,
                "timestamp": NO_TIMESTAMP if each.timestamp is None else each.timestamp,
                "key": each.key,
                "value": each.value,
                "headers": [],
            }
            for each in data_messages(message, frame_budget())
        ],
    }
