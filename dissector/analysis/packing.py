"""Bodies of messages for who keeps records elsewhere: a batch has its section's bytes in place of them, and back.

What a section holds follows from its bytes alone, but for records of internal topics and control batches: in these may
be ids of topics, and names of those are known to the conversation. They stay as they are.

Invariant: `unpacked` gives what JSON has of the message, whatever was in it: a test over all captures.
"""

from typing import Any, Final, cast

import orjson

from dissector.analysis.records import Carried, Log, of_batch, of_object
from dissector.json_text import dumps
from dissector.protocol.embedded.topics import RECORDS_FIELDS, TOPICS
from dissector.protocol.embedded.values import has_names, opener, topic_of
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.objects import (
    Object,
    budget_of,
    head_object,
    message_object,
    records_object,
    rest_object,
    section_object,
    unread_object,
)
from dissector.protocol.records.parts import PartKind, split
from dissector.protocol.records.writing import records_bytes
from dissector.protocol.wire import WireError
from dissector.session.exchange import Message

SECTIONS: Final = ("data", "compressed")
"""What a batch has of its section, plain or not; a wrapper the latter."""


class Packer:
    """Opens the `records` fields of one message; `carried` gets the records."""

    def __init__(self, message: Message, carried: list[Carried]) -> None:
        self._context = message.context
        self._carried = carried
        self._budget = budget_of()
        named = has_names(message.shape.body or "", message.shape.body_version, message.context)
        self._whole = opener(message.context, self._budget, named=named)

    def __call__(self, data: bytes, topic: Object, partition: Object) -> Object:
        """A field, its records left out."""
        called = topic_of(topic, self._context)
        log = Log(called or str(topic.get("topic_id")), partition.get("partition_index", partition.get("index")))
        if called in TOPICS:
            return self._kept(data, topic, partition, log)
        batches: list[Object] = []
        value: Object = {"size": len(data), "batches": batches}
        for kind, start, end in split(data):
            raw = data[start:end]
            if kind is PartKind.MESSAGE:
                batches.append(self._message(raw, log))
            elif kind is not PartKind.BATCH:
                value[kind.value] = rest_object(raw)
            elif (batch := Batch.read(raw)).is_control:
                batches += self._kept(raw, topic, partition, log)["batches"]
            else:
                batches.append(self._batch(batch, log))
        return value

    def _kept(self, data: bytes, topic: Object, partition: Object, log: Log) -> Object:
        """A field that stays as it is."""
        value: Object = self._whole(data, topic, partition)
        for batch in value["batches"]:
            self._carried += of_object(batch, log)
        return value

    def _batch(self, batch: Batch, log: Log) -> Object:
        value = head_object(batch)
        try:
            self._carried += of_batch(batch, batch.records(self._budget), log)
        except (DecompressionError, WireError) as error:
            return value | unread_object(batch, error)
        return value | section_object(batch)

    def _message(self, raw: bytes, log: Log) -> Object:
        value = message_object(raw, self._budget)
        self._carried += of_object(value, log)
        if value.get("messages") is not None:
            del value["messages"]
        return value


def unpacked(body: Object, name: str) -> Object:
    """The body of a message that was packed, as JSON has it: with its records, where bytes of sections are there."""
    topics, partitions, field = RECORDS_FIELDS[name].split(".")

    def of_topic(topic: dict[str, Any]) -> dict[str, Any]:
        return topic | {partitions: [each | _with_records(each.get(field), field) for each in topic[partitions]]}

    return body | {topics: [of_topic(topic) for topic in body[topics]]} if body.get(topics) else body


def _with_records(value: Object | None, field: str) -> Object:
    return {field: value | {"batches": [_opened(batch) for batch in value["batches"]]}} if value else {}


def _opened(batch: Object) -> Object:
    has_section = any(name in batch for name in SECTIONS)
    if not has_section or "records" in batch or "messages" in batch or "magic" not in batch:
        return batch
    [found] = records_object(records_bytes({"batches": [batch]}))["batches"]
    return cast(Object, orjson.loads(dumps(found)))
