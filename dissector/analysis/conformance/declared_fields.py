"""The fields that rules declare, found in the columns of messages and in decoded bodies.

A field is named as detectors of findings name theirs: ``request.topics.partitions.partition``; `TAGS_OF_REQUEST` and
`TAGS_OF_RESPONSE` are the unknown tagged fields of all structures.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.tested_fields import RecordsTest, Test
from dissector.core.arrays import Bool, Int64
from dissector.exchange.model import Exchange
from dissector.findings.framework.read_fields import REQUEST, ReadField, read_field
from dissector.protocol.codec.program import ColumnPlan, Part, Program
from dissector.protocol.schema.field_names import ERROR_CODES

_UNKNOWN_TAGS: Final = "unknown_tagged_fields"
TAGS_OF_REQUEST: Final = f"request.**.{_UNKNOWN_TAGS}"
TAGS_OF_RESPONSE: Final = f"response.**.{_UNKNOWN_TAGS}"
_RECORDS: Final = "records"
TROUBLE: Final = frozenset((*ERROR_CODES, "throttle_time_ms"))
"""Fields that are zero in most responses."""


NumberTest = Callable[..., Bool]
"""Which numbers of a column pass; which pairs of several columns do."""


class OfRecords(NamedTuple):
    """A test of what is in `records` fields. How their batches look (`Want.OUTLINE`) decides, too."""

    test: RecordsTest


class Silences(NamedTuple):
    """A test of numbers: of a message that passes the rule says nothing."""

    test: NumberTest


Fields = str | tuple[str, ...]
"""A field, or several numbers of one structure that a test compares."""
Reading = NumberTest | OfRecords | Silences | None
"""What of a field decides: all of it, or whether it passes a test."""
Reads = Mapping[Fields, Reading]


@cache
def fields_of(names: Fields) -> tuple[ReadField, ...]:
    """The fields of a name, or of several, which are of one side."""
    return tuple(read_field(name) for name in ([names] if isinstance(names, str) else names))


class SideFields:
    """What is read of the messages of one side. Rules ask again with each capture: `of` remembers."""

    def __init__(self, reads: Iterable[tuple[Fields, Reading]], side: str) -> None:
        chosen = ((fields_of(names), test) for names, test in reads if not isinstance(test, Silences))
        of_side = [(fields, test) for fields, test in chosen if fields[0].side == side]
        self.tests = [(fields, test) for fields, test in of_side if test is not None]
        self._keys = [fields[0] for fields, test in of_side if test is None]
        self._outlined = self._keys + [fields[0] for fields, test in self.tests if isinstance(test, OfRecords)]
        self.key = (
            side,
            frozenset(self._keys),
            frozenset(self._outlined),
            frozenset(field for fields, _ in self.tests for field in fields if not field.is_anywhere),
        )
        """What messages are numbered by."""
        self._are_keys: dict[ColumnPlan, bool] = {}

    @classmethod
    def of(cls, reads: Reads, side: str) -> "SideFields":
        """Return those of some readings."""
        return _side_fields(tuple(reads.items()), side)

    @property
    def key_fields(self) -> bool:
        """Whether something of the side is read at all."""
        return bool(self._keys or self.tests)

    @property
    def has_keys(self) -> bool:
        """Whether messages are numbered by anything but their API and version."""
        return any(self.key[1:])

    def is_key(self, _api_key: int, column: ColumnPlan) -> bool:
        """Whether a column is in the key of messages: of tested fields only how many there are."""
        if column not in self._are_keys:
            self._are_keys[column] = self._is_key(column)
        return self._are_keys[column]

    def _is_key(self, column: ColumnPlan) -> bool:
        if column.part is Part.UNKNOWN_TAGS or column.type == _RECORDS:
            return False
        if any(field.is_at(column.path) for field in self._keys if field.path[-1] == column.name):
            return True
        around = (field.path[: len(column.path)] for fields, _ in self.tests for field in fields)
        return column.part is not Part.VALUE and column.path in around

    def is_outline(self, _api_key: int, column: ColumnPlan) -> bool:
        """Whether the outline of a column is in the key."""
        return column.type == _RECORDS and any(field.is_at(column.path) for field in self._outlined)

    def column_tests(self, question: int, program: Program) -> list[Test]:
        """The tests of a program's columns, for a question. A test of several fields is made where all of them are
        there."""
        found: list[Test] = []
        for fields, test in self.tests:
            for first in _columns(program, fields[0]):
                others = [list(_columns(program, field)) for field in fields[1:]]
                if all(others):
                    columns = first, *(each[0] for each in others)
                    of_records = test.test if isinstance(test, OfRecords) else None
                    of_values = None if isinstance(test, OfRecords) else test
                    found.append(Test(question, columns, of_values, of_records))
        return found

    @property
    def is_of_trouble(self) -> bool:
        """Whether only a response with an error, or one that was throttled, may pass a test."""
        names = (name for fields, _ in self.tests for *_, name in (field.path for field in fields))
        return all(name in TROUBLE for name in names) and not any(
            isinstance(test, OfRecords) or test(np.zeros(1, np.int64))[0] for _, test in self.tests
        )

    @property
    def reads_records(self) -> bool:
        """Whether a test is of records."""
        return any(isinstance(test, OfRecords) for _, test in self.tests)

    def passes(self, exchange: Exchange) -> bool:
        """Whether a decoded exchange passes one of the tests; those of records are for whoever looks at it."""
        message = exchange.request if self.key[0] == REQUEST else exchange.response
        if message is None:
            return False
        for fields, test in self.tests:
            values = [np.array(list(_values(message.body, field)), np.int64) for field in fields]
            if isinstance(test, OfRecords) or (len({len(each) for each in values}) == 1 and test(*values).any()):
                return True
        return False


@lru_cache(maxsize=512)
def _side_fields(reads: tuple[tuple[Fields, Reading], ...], side: str) -> SideFields:
    return SideFields(reads, side)


def _columns(program: Program, field: ReadField) -> Iterator[int]:
    for number, column in enumerate(program.columns):
        if field.path[-1] == _UNKNOWN_TAGS:
            if column.part is Part.UNKNOWN_TAGS and column.path[0] == "body":
                yield number
        elif column.part is Part.VALUE and column.name == field.path[-1] and field.is_at(column.path):
            yield number


def _values(body: object, field: ReadField) -> Iterator[int]:
    """The values of a field in a body, as columns have them: sizes in place of what is no number."""
    for _, value in field.in_body(body):
        if isinstance(value, int):
            yield value
        elif value is None or isinstance(value, str | bytes):
            yield -1 if value is None else len(value)


def is_negative(values: Int64) -> Bool:
    """Which numbers are below zero."""
    return values < 0


def is_positive(values: Int64) -> Bool:
    """Which numbers are above zero."""
    return values > 0


def silencing(reads: Reads) -> Reads:
    """Those readings that silence a rule, as tests."""
    return {names: each.test for names, each in reads.items() if isinstance(each, Silences)}


def is_there(values: Int64) -> Bool:
    """Which texts and arrays are not null, by their sizes."""
    there: Bool = values >= 0
    return there


def is_empty(values: Int64) -> Bool:
    """Which texts and arrays have nothing or are null, by their sizes."""
    empty: Bool = values <= 0
    return empty


def is_set(values: Int64) -> Bool:
    """Which numbers are not zero."""
    are_set: Bool = values != 0
    return are_set


@cache
def is_one_of(*numbers: int) -> NumberTest:
    """A test for some numbers."""
    chosen = np.array(numbers, np.int64)

    def test(values: Int64) -> Bool:
        found: Bool = np.isin(values, chosen)
        return found

    return test
