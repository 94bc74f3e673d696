"""The records that many rows carry, as columns, without an `Exchange` for each row.

Invariant: the records of a row are those of its bodies in the careful way (a property test), or the row is refused: a
batch that can't be read or is read batch by batch in any other way needs a careful look.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Bool, Int32, Int64, UInt8, UInt64
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.embedded.secrets import is_metadata_log
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.secret_marks import secret_marks
from dissector.protocol.kernel.shredding import Arena, Shredded, numbered
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.records.column_reader import RecordReader
from dissector.protocol.records.columns import KINDS, BatchError, RecordColumns, valid_checksums
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import TOPIC_ID
from dissector.protocol.wire import uuid_text

ID_SIZE: Final = 16
_PARTITION_FIELDS: Final = ("partition_index", "index")
TOPIC_FIELDS: Final = ("topic", "name")
"""Names of a topic's name."""
_BATCH: Final = KINDS.index(RecordsEntryKind.BATCH)


class CarriedColumns(NamedTuple):
    """Records of some rows, and what is known of each of their batches, `(entries,)`."""

    records: RecordColumns
    row: Int64
    """The place of the batch's row among those that were asked for."""
    topic_number: Int32
    """The number of its topic in `topics`."""
    partition: Int64
    crc_valid: Bool
    """Of an entry that is no batch it means nothing."""
    topics: list[str]
    """Names of topics, or ids where no name is known."""
    may_hold_secrets: Bool
    """Whether its records have to be searched for secrets."""

    @property
    def topic(self) -> list[str]:
        """The topic of each entry."""
        return [self.topics[each] for each in self.topic_number.tolist()]

    @property
    def is_batch(self) -> Bool:
        """Which entries are batches."""
        is_batch: Bool = self.records.entries["kind"] == _BATCH
        return is_batch

    @property
    def refused(self) -> Int64:
        """The places of rows that need a careful look."""
        is_refused: Bool = self.is_batch & (self.records.entries["error"] != BatchError.NONE)
        return self.row[is_refused | self.may_hold_secrets]


class RecordsOfRows:
    """Reads the records of rows of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._shows_secrets = bodies.shows_secrets
        self._arena = Arena()
        self._reader = RecordReader()

    def of(
        self, rows: Int64, names: Mapping[str, str], read: Callable[[Int64], object] = lambda _: None
    ) -> Iterator[CarriedColumns]:
        """Yield the records of rows of the index, ascending; `names` are those of topics by id. What is yielded is
        valid until the next. `read` gets the places of the rows whose records are read so, before they are."""
        for is_request in (True, False):
            for messages in self._bodies.messages(rows, is_request=is_request):
                columns = _columns(messages.layout, messages.program)
                if columns is not None:
                    yield from self._of_messages(messages, columns, names, read)

    def fields(
        self, rows: Int64, names: Mapping[str, str], read: Callable[[Int64], object]
    ) -> "Iterator[RecordsFields]":
        """Yield the `records` fields of the requests of rows of the index; `names` and `read` as in `of`."""
        for messages in self._bodies.messages(rows, is_request=True):
            columns = _columns(messages.layout, messages.program)
            if columns is not None:
                yield from self._fields(messages, columns, names, read)

    def may_read(self, rows: Int64) -> Bool:
        """Which rows of the index may be read so, `(n,)`: not a Fetch that names the metadata log, or may have before
        it was damaged, as its response has secrets wherever its records are."""
        may: Bool = self._bodies.api_keys(rows) != int(ApiKey.FETCH)
        for messages in self._bodies.messages(rows, is_request=True):
            if messages.layout.body != "FetchRequest":
                continue
            topic, is_id = _topic_column(messages.program, ("body", "topics"))
            wanted = messages.program.wanted(values=(topic,))
            for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
                numbers, names = topics(part, topic, messages.frames.addresses, {}, are_ids=is_id)
                is_log = np.array(
                    [is_metadata_log(*((None, each) if is_id else (each, None))) for each in names], np.bool_
                )
                at = messages.at[part.first : part.stop]
                may[at] = part.errors == 0
                in_row = part.column(topic).rows.astype(np.int64)
                may[at[in_row[is_log[numbers]]]] = False
        return may

    def _of_messages(
        self, messages: Messages, columns: "_Columns", names: Mapping[str, str], read: Callable[[Int64], object]
    ) -> Iterator[CarriedColumns]:
        for fields in self._fields(messages, columns, names, read):
            for found in self._reader.read(fields.data, fields.starts, fields.ends, fields.row):
                field = found.entries["field"]
                yield CarriedColumns(
                    found, fields.row[field], fields.topic[field], fields.partition[field],
                    valid_checksums(fields.data, found.entries), fields.names, self._may_hold_secrets(found),
                )  # fmt: skip

    def _may_hold_secrets(self, found: RecordColumns) -> Bool:
        """Which entries have sections in which there may be a secret, `(entries,)`."""
        entries = found.entries
        if self._shows_secrets:
            return np.zeros(len(entries), np.bool_)
        starts = entries["section_start"]
        sizes = np.where(entries["records"] > 0, entries["section_end"] - starts, 0)
        return secret_marks().are_near((found.data.ctypes.data + starts).astype(np.uint64), sizes)

    def _fields(
        self, messages: Messages, columns: "_Columns", names: Mapping[str, str], read: Callable[[Int64], object]
    ) -> "Iterator[RecordsFields]":
        wanted = messages.program.wanted(values=columns.values)
        for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
            read(messages.at[part.first : part.stop][part.errors == 0])
            yield RecordsFields.of(part, columns, messages, names)


class _Columns(NamedTuple):
    """The numbers of columns in a program."""

    records: int
    topic: int
    topic_is_id: bool
    partitions: int
    """How many a topic has."""
    partition: int

    @property
    def values(self) -> tuple[int, ...]:
        """Those whose values are needed."""
        return self.records, self.topic, self.partitions, self.partition


@lru_cache(maxsize=256)
def _columns(layout: MessageLayout, program: Program) -> _Columns | None:
    """The columns around the records of a message; None for one that has none."""
    if layout.body not in RECORDS_FIELDS:
        return None
    topics, partitions, records = RECORDS_FIELDS[layout.body].split(".")
    of_topic, of_partition = ("body", topics), ("body", topics, partitions)

    def number(of: tuple[str, ...], names: tuple[str, ...], part: Part = Part.VALUE) -> int:
        return _number(program, of, names, part)

    return _Columns(
        number(of_partition, (records,)),
        *_topic_column(program, of_topic),
        number(of_topic, (partitions,), Part.COUNT),
        number(of_partition, _PARTITION_FIELDS),
    )


def _number(program: Program, of: tuple[str, ...], names: tuple[str, ...], part: Part = Part.VALUE) -> int:
    """The number of the column with one of some names."""
    paths = [(*of, name) for name in names]
    return next(n for n, each in enumerate(program.columns) if each.part is part and each.path in paths)


def _topic_column(program: Program, of_topic: tuple[str, ...]) -> tuple[int, bool]:
    """The number of the column that names topics, and whether it does by their ids."""
    topic = _number(program, of_topic, (*TOPIC_FIELDS, TOPIC_ID))
    return topic, program.columns[topic].name == TOPIC_ID


class RecordsFields(NamedTuple):
    """`records` fields that are not empty, `(n,)`: the n-th is `data[starts[n]:ends[n]]`."""

    data: UInt8
    starts: Int64
    ends: Int64
    row: Int64
    """The place of the field's row among those that were asked for."""
    topic: Int32
    """The numbers of their topics in `names`."""
    partition: Int64
    names: list[str]

    @classmethod
    def of(cls, part: Shredded, columns: _Columns, messages: Messages, names: Mapping[str, str]) -> "RecordsFields":
        """The fields of a part of messages, copied."""
        frames = messages.frames.addresses
        sizes, positions, in_row = part.column(columns.records)
        rows = part.first + in_row.astype(np.int64)
        topic, texts = topics(part, columns.topic, frames, names, are_ids=columns.topic_is_id)
        of_topic = np.repeat(topic, np.maximum(part.column(columns.partitions).values, 0))
        some = sizes > 0
        addresses, ends = frames[rows[some]] + positions[some].astype(np.uint64), np.cumsum(sizes[some])
        return cls(
            join(addresses, sizes[some]), ends - sizes[some], ends, messages.at[rows[some]], of_topic[some],
            part.column(columns.partition).values[some], texts,
        )  # fmt: skip


def topics(
    part: Shredded, column: int, frames: UInt64, names: Mapping[str, str], *, are_ids: bool
) -> tuple[Int32, list[str]]:
    """The topics of a part as numbers, and their names."""
    sizes, positions, in_row = part.column(column)
    sizes = np.full(len(sizes), ID_SIZE) if are_ids else np.maximum(sizes, 0)
    data = join(frames[part.first + in_row.astype(np.int64)] + positions.astype(np.uint64), sizes)
    ends = np.cumsum(sizes)
    numbers, firsts = numbered(data, ends, np.zeros(len(ends), np.uint8))
    found = [data[ends[n] - sizes[n] : ends[n]].tobytes() for n in firsts.tolist()]
    texts = [uuid_text(each) if are_ids else each.decode("utf-8", "surrogateescape") for each in found]
    return numbers, [names.get(text, text) for text in texts] if are_ids else texts
