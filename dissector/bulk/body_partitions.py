"""What bodies say about partitions of topics: numbers of the partitions in lists of topics, of many messages at once.

Invariant: a number is the one that the decoded body has, or is not there. A message that needs a careful look is not
read, and has no partition.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.body_fields import NO_TEXT, OfBodies, texts_of
from dissector.bulk.record_columns import TOPIC_FIELDS
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.grouping import expanded
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.schema.field_names import TOPIC_ID

Lists = tuple[str, str]
"""Names of the list of topics in a body, and of the list of partitions in a topic."""
NUMBERS: Final = ("partition_index", "index", "partition")
"""Names of a partition's number."""
_KINDS: Final = ("int8", "int16", "int32", "int64", "records")


class OfPartitions(NamedTuple):
    """The partitions in some messages, `(n,)`: those of a message are in the order in which it has them."""

    row: Int64
    """The place of its message among those that were asked for."""
    topic: Int64
    """The number of its topic's name, or of its id where no name is known."""
    partition: Int64
    numbers: dict[str, OfBodies]
    """By name of the field. Of records the bytes; -1 for null."""
    texts: dict[str, Int64]
    """Of texts that stand alone in the body, their numbers by message: `NO_TEXT` where there is none."""
    is_read: Bool
    """Which messages were read, by message."""
    topic_at: Int64
    """The position of its topic in the message."""
    partition_at: Int64
    """Its own position in the topic."""


class BodyPartitions:
    """Of the messages of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()

    def of(
        self, rows: Int64, lists: Mapping[int, Lists], fields: Sequence[str], alone: Sequence[str],
        topic_names: Mapping[str, str], texts: ValueNumbers[str], *, is_request: bool,
    ) -> OfPartitions:  # fmt: skip
        """The partitions in requests of rows of the index, ascending, or in their responses: in the lists of their
        API, with these `fields`, and with texts that stand `alone` in the body. `texts` numbers texts; `topic_names`
        are those of topics by id."""
        parts = [_Part.none()]
        alone_of = {name: np.full(len(rows), NO_TEXT) for name in alone}
        is_read = np.zeros(len(rows), np.bool_)
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            if messages.api_key not in lists:
                continue
            columns = _columns(messages.program, lists[messages.api_key], tuple(fields), tuple(alone))
            wanted = messages.program.wanted(values=columns.values)
            for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
                is_read[messages.at[part.first : part.stop]] = part.errors == 0
                parts.append(_partitions(part, messages, columns, topic_names, texts))
                for name, column in columns.alone:
                    at = messages.at[part.first + part.column(column).rows.astype(np.int64)]
                    alone_of[name][at] = texts_of(part, messages, column, {}, texts)
        row, topic, partition, *positions = (
            np.concatenate(each) for each in zip(*(part[:-1] for part in parts), strict=True)
        )
        numbers = {name: _joined([part.of(name) for part in parts]) for name in fields}
        return OfPartitions(row, topic, partition, numbers, alone_of, is_read, *positions)


class _ListColumns(NamedTuple):
    """The numbers of columns in a program."""

    topic: int
    partitions: int
    """How many a topic has."""
    partition: int
    fields: tuple[tuple[str, int], ...]
    """Of a partition, with their names."""
    alone: tuple[tuple[str, int], ...]
    """Texts that stand alone in the body, with their names."""

    @property
    def values(self) -> list[int]:
        """Those whose values are needed."""
        some = (*self.fields, *self.alone)
        return [self.topic, self.partitions, self.partition, *(column for _, column in some)]


class _Part(NamedTuple):
    """Partitions of messages of one layout."""

    row: Int64
    topic: Int64
    partition: Int64
    topic_at: Int64
    partition_at: Int64
    fields: dict[str, Int64]

    @classmethod
    def none(cls) -> "_Part":
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, nothing, {})

    def of(self, name: str) -> OfBodies:
        """Return the numbers of a field, which this layout may not have."""
        found = self.fields.get(name)
        count = len(self.row)
        return OfBodies.none(count) if found is None else OfBodies(found, np.ones(count, np.bool_))


@lru_cache(maxsize=512)
def _columns(program: Program, lists: Lists, fields: tuple[str, ...], alone: tuple[str, ...]) -> _ListColumns:
    """The columns of the lists of a body."""
    of_topic = ("body", lists[0])
    of_partition = (*of_topic, lists[1])
    found = {(each.path, each.part): number for number, each in enumerate(program.columns)}

    def numbers(of: tuple[str, ...], names: Sequence[str], *kinds: str) -> list[tuple[str, int]]:
        there = ((name, found.get(((*of, name), Part.VALUE))) for name in names)
        return [(name, at) for name, at in there if at is not None and program.columns[at].type in kinds]

    [(_, topic), *_] = numbers(of_topic, (*TOPIC_FIELDS, TOPIC_ID), "string", "uuid")
    [(_, partition)] = numbers(of_partition, NUMBERS, "int32")
    around = program.columns[partition].above
    of_fields = [each for each in numbers(of_partition, fields, *_KINDS) if program.columns[each[1]].above == around]
    return _ListColumns(
        topic, found[of_partition, Part.COUNT], partition, tuple(of_fields), tuple(numbers(("body",), alone, "string"))
    )


def _partitions(
    part: Shredded, messages: Messages, columns: _ListColumns, names: Mapping[str, str], texts: ValueNumbers[str]
) -> _Part:
    """Return the partitions in a part of messages, copied."""
    counts = np.maximum(part.column(columns.partitions).values, 0)
    number, topic_rows = part.column(columns.partition), part.column(columns.topic).rows
    topic_at = np.arange(len(counts)) - np.searchsorted(topic_rows, topic_rows)
    return _Part(
        messages.at[part.first + number.rows.astype(np.int64)],
        np.repeat(texts_of(part, messages, columns.topic, names, texts), counts), number.values.copy(),
        np.repeat(topic_at, counts), expanded(np.zeros_like(counts), counts),
        {name: part.column(column).values.copy() for name, column in columns.fields},
    )  # fmt: skip


def _joined(parts: Sequence[OfBodies]) -> OfBodies:
    return OfBodies(*(np.concatenate(each) for each in zip(*parts, strict=True)))
