"""The batches of Produce requests as columns, by their headers, without decoding records.

Invariant: they are those that the decoded requests have (a property test). Requests that need a careful look are
decoded one by one.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, cast

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.findings.framework.decoded_exchange import request_body
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.protocol.codec.program import Part, Program, Wanted
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message import PREFIX, Values
from dissector.protocol.records.batch import HEADER, HEADER_COLUMNS
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.wire import uuid_text

MAGIC: Final = 2
_TOPICS: Final = ("body", "topic_data")
_PARTITIONS: Final = (*_TOPICS, "partition_data")
_NO_TOPIC: Final[Values] = {}
_UUID_SIZE: Final = 16
ReadFrame = Callable[[int], tuple[bytes, int]]
"""Returns the bytes of a frame, and how many precede the first gap."""


def path_of(positions: tuple[int, int]) -> str:
    """Return the field path of a batch, by the positions of its topic in the request and its partition in the topic."""
    return "request.body.topic_data[{}].partition_data[{}].records".format(*positions)


class BatchColumns(NamedTuple):
    """Batches, `(n,)`."""

    at: Int64
    """The place of the request among those that were asked for, ascending."""
    topic_at: Int64
    """Position of the topic in the request."""
    partition_at: Int64
    """Position of the partition in the topic."""
    partition: Int64
    size: Int64
    """Bytes of the `records` field, which holds just this batch."""
    codec: Int64
    records_count: Int64
    producer_id: Int64
    producer_epoch: Int64
    base_sequence: Int64

    def where(self, which: Bool | Int64) -> "BatchColumns":
        """Return some of the batches."""
        return BatchColumns(*(column[which] for column in self))

    @property
    def has_sequence(self) -> Bool:
        """Which batches are those of idempotent producers (KIP-98)."""
        found: Bool = (self.producer_id >= 0) & (self.base_sequence >= 0)
        return found


class ProduceBatches(NamedTuple):
    """The batches of Produce requests: one for each partition, as since KIP-98. Older message sets and damaged batches
    are omitted."""

    requests: ExaminedRows
    """`(r,)`."""
    is_read: Bool
    """Which requests can be read to their end, `(r,)`."""
    columns: BatchColumns
    topics: list[Values]
    """By batch, if it has a sequence number, the structure with the name or id of its topic."""
    read: ReadFrame

    def path(self, batch: int) -> str:
        """Return the path of the `records` field of a batch."""
        return path_of((int(self.columns.topic_at[batch]), int(self.columns.partition_at[batch])))

    def records(self, batch: int) -> bytes:
        """Return the `records` field of a batch. Its request is decoded."""
        columns, at = self.columns, int(self.columns.at[batch])
        version, frame = int(self.requests.version[at]), int(self.requests.request[at])
        request = request_body(ApiKey.PRODUCE, version, *self.read(frame))
        topic = cast(list[Values], request["topic_data"])[int(columns.topic_at[batch])]
        partition = cast(list[Values], topic["partition_data"])[int(columns.partition_at[batch])]
        return cast(bytes, partition["records"])


class ProduceBatchReader:
    """Reads the batches of one capture."""

    def __init__(self, bodies: BodyColumns, read: ReadFrame) -> None:
        self._bodies = bodies
        self._read = read
        self._arena = Arena()
        self._fields: dict[int, _ProduceFields] = {}
        """By the id of a program."""

    def __getstate__(self) -> tuple[BodyColumns, ReadFrame]:
        """For a checkpoint: the id of a program is that of this process only."""
        return self._bodies, self._read

    def __setstate__(self, arguments: tuple[BodyColumns, ReadFrame]) -> None:
        ProduceBatchReader.__init__(self, *arguments)

    def of(self, requests: ExaminedRows) -> ProduceBatches:
        """Return the batches of Produce requests, at least one."""
        is_read = np.zeros(len(requests.row), np.bool_)
        found: list[tuple[BatchColumns, list[Values]]] = []
        for messages in self._bodies.messages(requests.row, is_request=True, in_columns=True):
            known = self._fields.get(id(messages.program))
            fields = known or self._fields.setdefault(id(messages.program), _ProduceFields.of(messages.program))
            for part in self._arena.shred(messages.frames, messages.program, fields.wanted, PREFIX):
                is_read[messages.at[part.first : part.stop]] = part.errors == 0
                found.append(_columns(messages, part, fields))
        for at in np.flatnonzero(~is_read).tolist():
            body = request_body(ApiKey.PRODUCE, int(requests.version[at]), *self._read(int(requests.request[at])))
            is_read[at] = bool(body)
            found.append(_decoded(at, body))
        columns, topics = _joined(found)
        return ProduceBatches(requests, is_read, columns, topics, self._read)


class _ProduceFields(NamedTuple):
    """The columns of Produce requests that say where batches are."""

    program: Program
    wanted: Wanted
    topic: int
    """The name, or the id."""
    partitions: int
    """How many a topic has."""
    partition: int
    """The number of one."""
    records: int
    is_by_id: bool

    @classmethod
    def of(cls, program: Program) -> "_ProduceFields":
        """Return those of a program."""
        columns = {(each.path, each.part): number for number, each in enumerate(program.columns)}
        by_id = columns.get(((*_TOPICS, "topic_id"), Part.VALUE))
        topic = columns[(*_TOPICS, "name"), Part.VALUE] if by_id is None else by_id
        partitions = columns[_PARTITIONS, Part.COUNT]
        partition = columns[(*_PARTITIONS, "index"), Part.VALUE]
        records = columns[(*_PARTITIONS, "records"), Part.VALUE]
        wanted = program.wanted(values=(topic, partitions, partition, records))
        return cls(program, wanted, topic, partitions, partition, records, by_id is not None)


def _columns(messages: Messages, part: Shredded, fields: _ProduceFields) -> tuple[BatchColumns, list[Values]]:
    """The batches of plain requests."""
    topic, counts = part.column(fields.topic), np.maximum(part.column(fields.partitions).values, 0)
    records = part.column(fields.records)
    of_topic = np.repeat(np.arange(len(counts)), counts)
    topic_at = np.arange(len(counts)) - np.searchsorted(topic.rows, topic.rows)
    partition_at = np.arange(len(of_topic)) - (np.cumsum(counts) - counts)[of_topic]
    addresses = messages.frames.addresses[part.first + records.rows.astype(np.int64)]
    large = np.flatnonzero(records.values >= HEADER.size)
    starts = addresses[large] + records.positions[large].astype(np.uint64)
    headers = join(starts, np.full(len(large), HEADER.size)).view(HEADER_COLUMNS)
    is_batch = (headers["magic"] == MAGIC) & (headers["records_count"] > 0)
    headers, which = headers[is_batch], large[is_batch]
    names = ("records_count", "producer_id", "producer_epoch", "base_sequence")
    found = BatchColumns(
        messages.at[part.first + records.rows[which].astype(np.int64)], topic_at[of_topic[which]], partition_at[which],
        part.column(fields.partition).values[which], records.values[which],
        headers["attributes"].astype(np.int64) & CODEC_MASK,
        *(headers[name].astype(np.int64) for name in names),
    )  # fmt: skip
    topics = [_NO_TOPIC] * len(which)
    if found.has_sequence.any():
        sizes = np.full(len(counts), _UUID_SIZE) if fields.is_by_id else np.maximum(topic.values, 0)
        in_frame = messages.frames.addresses[part.first + topic.rows.astype(np.int64)]
        topic_names = _names(join(in_frame + topic.positions.astype(np.uint64), sizes), sizes, fields.is_by_id)
        topics = [topic_names[each] for each in of_topic[which].tolist()]
    return found, topics


def _names(joined: UInt8, sizes: Int64, is_by_id: bool) -> list[Values]:
    """The structures with the names or ids of topics."""
    data, ends = joined.tobytes(), np.cumsum(sizes)
    pairs = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    return [_named(data[start:end], is_by_id) for start, end in pairs]


@lru_cache(maxsize=1024)
def _named(name: bytes, is_by_id: bool) -> Values:
    return {"topic_id": uuid_text(name)} if is_by_id else {"name": name.decode("utf-8", "surrogateescape")}


def _decoded(at: int, request: Values) -> tuple[BatchColumns, list[Values]]:
    """The batches of a decoded request."""
    rows: list[tuple[int, ...]] = []
    topics: list[Values] = []
    for topic_at, topic in enumerate(cast(list[Values], request.get("topic_data") or ())):
        for partition_at, partition in enumerate(cast(list[Values], topic.get("partition_data") or ())):
            records = partition["records"]
            if not isinstance(records, bytes) or len(records) < HEADER.size:
                continue
            header = np.frombuffer(records, HEADER_COLUMNS, 1)[0]
            if header["magic"] != MAGIC or header["records_count"] <= 0:
                continue
            rows.append((
                at, topic_at, partition_at, cast(int, partition["index"]), len(records),
                int(header["attributes"]) & CODEC_MASK, int(header["records_count"]), int(header["producer_id"]),
                int(header["producer_epoch"]), int(header["base_sequence"]),
            ))  # fmt: skip
            topics.append(topic)
    return BatchColumns(*np.array(rows, np.int64).reshape(-1, len(BatchColumns._fields)).T), topics


def _joined(parts: list[tuple[BatchColumns, list[Values]]]) -> tuple[BatchColumns, list[Values]]:
    """Batches in the order of their requests."""
    none = np.zeros((0,), np.int64)
    columns = BatchColumns(*(np.concatenate([none, *each]) for each in zip(*(part for part, _ in parts), strict=True)))
    topics = [topic for _, part in parts for topic in part]
    order = np.argsort(columns.at, kind="stable")
    return columns.where(order), [topics[each] for each in order.tolist()]
