"""Packs message bodies for tables that keep records elsewhere, and unpacks them: a packed `records` field has its bytes
and the sizes of its batches instead of the records.

Bytes can be decoded again without context, except records of internal topics and control batches: they may contain
topic ids, whose names depend on the conversation. These stay decoded. So does what could not be decoded, as the reason
may be the budget of the whole message.

Invariant: `unpacked` returns the JSON of the original message: a test over all captures.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Final, cast

import orjson

from dissector.core.json_text import dumps
from dissector.exchange.field_paths import replaced
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.topics import INTERNAL_TOPICS, RECORDS_FIELDS
from dissector.protocol.embedded.values import RecordsDecoder, has_names, records_decoder, topic_of
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.to_json import (
    Object,
    frame_budget,
    head_object,
    masked_object,
    message_object,
    records_object,
    rest_object,
    unread_object,
)
from dissector.protocol.wire import EncodeError
from dissector.tables.carried_records import CarriedRecords, LogPartition, records_of_batch, records_of_object

BYTES: Final = "bytes"
"""Key of a packed field's bytes, as hex."""
_MESSAGE_KEYS: Final = ("offset", "message_size", "magic", "compression")
_DECODED_KEYS: Final = frozenset(("records", "messages", "data", "value"))
"""A decoded batch, or a value that is not a batch, has one of these keys."""


class Packer:
    """Packs the `records` fields of one message; `carried` gets the records. If the bytes are not `kept` either, the
    whole header of a batch remains."""

    def __init__(self, message: ExchangeMessage, carried: list[CarriedRecords], *, kept: bool = True) -> None:
        self._context = message.context
        self._carried = carried
        self._kept = kept
        self._layout = message.layout
        self._budget = frame_budget()

    @cached_property
    def _decoder(self) -> RecordsDecoder:
        """Decodes fields that stay decoded. Few messages have any."""
        named = has_names(self._layout.body or "", self._layout.body_version, self._context)
        return records_decoder(self._context, self._budget, named=named)

    def __call__(self, data: bytes, topic: Object, partition: Object) -> Object:
        """Return a field without its records."""
        topic_name = topic_of(topic, self._context)
        log = LogPartition(
            topic_name or str(topic.get("topic_id")), partition.get("partition_index", partition.get("index"))
        )
        if topic_name in INTERNAL_TOPICS:
            return self._decoded(data, topic, partition, log)
        batches: list[Object] = []
        value: Object = {"size": len(data), "batches": batches}
        for kind, start, end in split_entries(data):
            if kind is RecordsEntryKind.MESSAGE:
                batches.append(self._message(data[start:end], log))
            elif kind is RecordsEntryKind.BATCH:
                batch = Batch.read(data[start:end])
                if batch.is_control:
                    batches += self._decoded(data[start:end], topic, partition, log)["batches"]
                else:
                    batches.append(self._batch(batch, log))
            elif not self._kept:
                value[kind.value] = rest_object(data[start:end])
        if data and self._kept:
            value[BYTES] = data.hex()
        return value

    def _decoded(self, data: bytes, topic: Object, partition: Object, log: LogPartition) -> Object:
        """Return a field that stays decoded."""
        value: Object = self._decoder(data, topic, partition)
        for batch in value["batches"]:
            self._carried += records_of_object(batch, log)
        return value

    def _batch(self, batch: Batch, log: LogPartition) -> Object:
        carried = records_of_batch(batch, self._budget, log)
        self._carried.append(carried)
        if batch.is_masked:
            return head_object(batch) | masked_object(batch)
        if carried.head is not None and carried.head.error is not None:
            return head_object(batch) | unread_object(batch, carried.head.error)
        return _size_object(batch) if self._kept else head_object(batch)

    def _message(self, raw: bytes, log: LogPartition) -> Object:
        value = message_object(raw, self._budget)
        self._carried += records_of_object(value, log)
        if "error" in value:
            return value
        return {name: value[name] for name in _MESSAGE_KEYS} if self._kept else value


def _size_object(batch: Batch) -> Object:
    """Return the sizes of a batch, as in JSON. More fields in each row would take long."""
    return {
        "base_offset": batch.base_offset,
        "batch_length": batch.batch_length,
        "compression": batch.compression,
        "records_count": batch.records_count,
    }


def unpacked(body: Object, name: str) -> Object:
    """Return a packed body with its records, as in JSON, if the bytes of fields were kept."""
    return _with_fields(body, name, unpacked_field)


def as_sent(body: Object, name: str) -> Object:
    """Return a packed body for encoding: with the bytes of fields, as hex. Raises `EncodeError` if they were not kept,
    as the remaining fields of a batch would encode to different bytes."""
    return _with_fields(body, name, _sent)


def _with_fields(body: Object, name: str, convert: Callable[[Object], object]) -> Object:
    path = RECORDS_FIELDS[name].split(".")
    return cast(Object, replaced(body, path, lambda field: convert(field) if field else field))


def _sent(value: Object) -> object:
    if BYTES in value:
        return value[BYTES]
    rest = (value[kind.value] for kind in (RecordsEntryKind.TRUNCATED, RecordsEntryKind.UNKNOWN) if kind.value in value)
    if not all(part.keys() & _DECODED_KEYS for part in (*value["batches"], *rest)):
        raise EncodeError("the bytes were not kept")
    return value


def unpacked_field(value: Object) -> Object:
    """Return a packed field with its records."""
    if BYTES not in value:
        return value
    found = records_object(bytes.fromhex(value[BYTES]))
    batches = [
        packed if packed.keys() & _DECODED_KEYS else decoded
        for packed, decoded in zip(value["batches"], found["batches"], strict=True)
    ]
    return cast(Object, orjson.loads(dumps(found | {"batches": batches})))
