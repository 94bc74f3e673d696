"""Batches of Produce requests in columns, where each `records` field is one batch of magic 2, as nearly all are.

Invariant: they are those that the decoded requests have (a property test), in their order. A request that needs a
careful look, or has a `records` field with anything else, is not read and has no batch.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.record_columns import topics
from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.columns import ValueNumbers
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.records.batch import HEADER, HEADER_COLUMNS
from dissector.protocol.records.entries import LEAST_SIZE, LOG_OVERHEAD

_TOPICS: Final = ("body", "topic_data")
_PARTITIONS: Final = (*_TOPICS, "partition_data")
VALUES: Final = ("attributes", "producer_id", "producer_epoch", "base_sequence", "records_count")
MAGIC: Final = 2
Headers = np.ndarray[tuple[int], np.dtype[np.void]]
"""As `HEADER_COLUMNS`."""


def single_batches(addresses: UInt64, sizes: Int64) -> tuple[Headers, Bool]:
    """The headers of those `records` fields in memory, `(fields,)`, that are one batch; and which ones are."""
    are_batches = sizes >= HEADER.size
    large = np.flatnonzero(are_batches)
    headers = join(addresses[large], np.full(len(large), HEADER.size)).view(HEADER_COLUMNS)
    size = headers["batch_length"].astype(np.int64)
    is_whole = (headers["magic"] == MAGIC) & (size >= LEAST_SIZE[MAGIC]) & (size + LOG_OVERHEAD == sizes[large])
    are_batches[large] = is_whole
    return headers[is_whole], are_batches


class SingleBatchColumns(NamedTuple):
    """Batches, `(n,)`."""

    at: Int64
    """The place of its request among those that were asked for, ascending."""
    topic_at: Int64
    """Position of the topic in the request."""
    partition_at: Int64
    """Position of the partition in the topic."""
    topic: Int64
    """The number of the topic's name, or of its id where no name is known."""
    partition: Int64
    size: Int64
    """Bytes of the `records` field."""
    attributes: Int64
    producer_id: Int64
    producer_epoch: Int64
    base_sequence: Int64
    records_count: Int64

    @property
    def has_sequence(self) -> Bool:
        """Which batches are those of idempotent producers (KIP-98)."""
        found: Bool = (self.producer_id >= 0) & (self.base_sequence >= 0)
        return found

    def where(self, which: Bool | Int64) -> "SingleBatchColumns":
        """Some of the batches."""
        return SingleBatchColumns(*(column[which] for column in self))


class SingleBatches(NamedTuple):
    """Of the rows that were asked for."""

    is_read: Bool
    """Which requests were read, by request."""
    columns: SingleBatchColumns


class SingleBatchReader:
    """Of the requests of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def of(self, rows: Int64, names: Mapping[str, str], texts: ValueNumbers[str]) -> SingleBatches:
        """The batches of rows of the index, ascending, that are Produce exchanges. `names` are those of topics by id;
        `texts` numbers them."""
        is_read = np.zeros(len(rows), np.bool_)
        parts: list[Int64] = [np.zeros((len(SingleBatchColumns._fields), 0), np.int64)]
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=True, in_columns=True):
            columns = _columns(messages.program)
            wanted = messages.program.wanted(values=columns)
            for part in arena.shred(messages.frames, messages.program, wanted, PREFIX):
                found, is_odd = _batches(part, messages, columns, names, texts)
                of_part = part.errors == 0
                of_part[is_odd] = False
                is_read[messages.at[part.first : part.stop]] = of_part
                parts.append(found[:, of_part[found[0]]])
                parts[-1][0] = messages.at[part.first + parts[-1][0]]
        order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
        columns_of = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
        return SingleBatches(is_read, SingleBatchColumns(*columns_of))


def _columns(program: Program) -> list[int]:
    """The columns of the topic, of how many partitions it has, of the partition's number and of its records."""
    columns = {(each.path, each.part): number for number, each in enumerate(program.columns)}
    by_id = columns.get(((*_TOPICS, "topic_id"), Part.VALUE))
    topic = columns[(*_TOPICS, "name"), Part.VALUE] if by_id is None else by_id
    partition, records = (columns[(*_PARTITIONS, name), Part.VALUE] for name in ("index", "records"))
    return [topic, columns[_PARTITIONS, Part.COUNT], partition, records]


def _batches(
    part: Shredded, messages: Messages, columns: list[int], names: Mapping[str, str], texts: ValueNumbers[str]
) -> tuple[Int64, Int64]:
    """The batches of a part, as columns, by the places of their requests in it; and requests with other records."""
    topic, partitions, partition, records = columns
    counts, topic_rows = np.maximum(part.column(partitions).values, 0), part.column(topic).rows
    topic_at = np.arange(len(counts)) - np.searchsorted(topic_rows, topic_rows)
    field = part.column(records)
    rows, addresses = field.rows.astype(np.int64), messages.frames.addresses
    are_ids = messages.program.columns[topic].type == "uuid"
    which, found = topics(part, topic, addresses, names, are_ids=are_ids)
    topic_numbers = np.array([texts.of(each) for each in found], np.int64)[which]
    starts = addresses[part.first + rows] + field.positions.astype(np.uint64)
    headers, are_batches = single_batches(starts, field.values)
    some, is_odd = np.flatnonzero(are_batches), (field.values > 0) & ~are_batches
    of_topic = np.repeat(np.arange(len(counts)), counts)
    partition_at = np.arange(len(of_topic)) - (np.cumsum(counts) - counts)[of_topic]
    of_topic, numbers, sizes = of_topic[some], part.column(partition).values[some], field.values[some]
    found_batches = (
        rows[some], topic_at[of_topic], partition_at[some], topic_numbers[of_topic], numbers, sizes,
        *(headers[name].astype(np.int64) for name in VALUES),
    )  # fmt: skip
    return np.stack(found_batches), rows[is_odd]
