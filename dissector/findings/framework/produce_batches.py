"""Reads the batches of a Produce request by their headers, without decoding records."""

from typing import Final, NamedTuple, cast

from dissector.protocol.message import Values
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.entries import MAGIC_AT
from dissector.protocol.wire import WireError, uuid_text, uvarint

MAGIC: Final = 2
FLEXIBLE: Final = 9
"""The first version with compact lengths and tagged fields."""
BY_ID: Final = 13
"""The first version that names topics by their ids."""
UUID: Final = 16
CLIENT_ID_AT: Final = 12
NO_TAGS_NO_TRANSACTION: Final = b"\0\0"
"""The header's empty tagged fields, and a null transactional id."""
COMPACT_ONE: Final = 2
"""The compact length of an array with one element."""
LONGEST_NAME: Final = 127
"""Bytes of a name and its length byte: the largest compact length in one byte."""


def path_of(positions: tuple[int, int]) -> str:
    """Return the field path of a batch, by the positions of its topic in the request and its partition in the topic."""
    return "request.body.topic_data[{}].partition_data[{}].records".format(*positions)


class ProduceBatch(NamedTuple):
    """One batch, sent to one partition."""

    topic: Values
    """The structure with its name or id."""
    partition: int
    positions: tuple[int, int]
    """Positions of the topic in the request, and of the partition in the topic."""
    codec: int
    records_count: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: bytes
    """The value of the `records` field, which holds just this batch."""

    @property
    def path(self) -> str:
        """The path of the `records` field."""
        return path_of(self.positions)


def produce_batches(request: Values) -> list[ProduceBatch]:
    """Return the batches of a Produce request: one per partition, as since KIP-98. Older message sets and damaged
    batches are omitted."""
    found: list[ProduceBatch] = []
    for at, topic in enumerate(cast(list[Values], request.get("topic_data") or ())):
        for number, partition in enumerate(cast(list[Values], topic.get("partition_data") or ())):
            records = partition["records"]
            if not isinstance(records, bytes) or len(records) < HEADER.size or records[MAGIC_AT] != MAGIC:
                continue
            batch = _batch(topic, cast(int, partition["index"]), (at, number), records)
            if batch is not None:
                found.append(batch)
    return found


def single_batch(data: bytes, version: int) -> ProduceBatch | None:
    """Return the batch of a frame with one topic and one partition, without decoding the rest; None if there are
    more, or anything is unusual. Nearly all requests of busy producers are of this kind."""
    if version < FLEXIBLE:
        return None
    try:
        at = CLIENT_ID_AT + 2 + max(0, int.from_bytes(data[CLIENT_ID_AT : CLIENT_ID_AT + 2], "big", signed=True))
        if data[at : at + 2] != NO_TAGS_NO_TRANSACTION or data[at + 8] != COMPACT_ONE:
            return None
        at += 9
        size = UUID if version >= BY_ID else data[at]
        name, at = data[at : at + size], at + size
        if size > LONGEST_NAME or data[at] != COMPACT_ONE:
            return None
        index = int.from_bytes(data[at + 1 : at + 5], "big", signed=True)
        size, at = uvarint(data, at + 5)
    except (IndexError, WireError):
        return None
    records = data[at : at + size - 1]
    if len(records) != size - 1 or len(data) != at + size + 2:
        return None
    if len(records) < HEADER.size or records[MAGIC_AT] != MAGIC:
        return None
    topic: Values = (
        {"topic_id": uuid_text(name)} if version >= BY_ID else {"name": name[1:].decode("utf-8", "surrogateescape")}
    )
    return _batch(topic, index, (0, 0), records)


def _batch(topic: Values, index: int, positions: tuple[int, int], records: bytes) -> ProduceBatch | None:
    head = HEADER.unpack_from(records)
    if head[-1] <= 0:
        return None
    return ProduceBatch(topic, index, positions, head[5] & CODEC_MASK, head[-1], head[-4], head[-3], head[-2], records)
