"""Counts of rows by the value of any row field.

A row is in the group of each of its values, and in none without one. Times are grouped by second, durations by power of
ten. Rows are counted in columns as far as the index and their findings tell the values; the others are decoded.

Invariant: columns give a row the groups that its exchange gives it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from dissector.analysis.stats.breakdowns import StatsGroup, quoted
from dissector.analysis.stats.column_counts import MeasureColumns, RowMeasures, add_by_key, are_unanswered
from dissector.analysis.stats.counts import CountsByKey
from dissector.analysis.stats.statistics_pass import StatisticsProgress
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.grouping import begins, by_distinct, expanded, owners
from dissector.core.text import duration
from dissector.core.times import SECOND
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.index_rows import IndexRows, RowValues, RowValueSets
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import FieldType, RowField

RANGES: Final = (FieldType.TIME, FieldType.DURATION)
_NO_GROUP: Final = -1


class RowGroups:
    """Collects the groups of some rows."""

    def __init__(self, field: RowField) -> None:
        self._field = field
        self._keys = ValueNumbers[str]()
        self._places = [np.zeros(0, np.int64)]
        self._numbers = [np.zeros(0, np.int64)]

    @property
    def keys(self) -> list[str]:
        """The groups."""
        return self._keys.values

    def add_columns(self, rows: IndexRows, first: int) -> Bool:
        """Add rows of the index, the first of which has the place `first`; return those of which columns do not tell
        the groups or anything else that is counted, `(n,)`."""
        field = self._field
        columns = [column(rows) for column in (*field.from_index, *filter(None, [field.from_summary]))]
        if not columns:
            return np.ones(len(rows), np.bool_)
        is_open = rows.findings().unclear | ~rows.is_exchange
        found: list[tuple[Int64, Int64]] = []
        for column in columns:
            if isinstance(column, RowValueSets):
                found += [self._of_sets(*source) for source in column.sources]
            else:
                found.append(self._of_values(column))
            if column.unclear is not None:
                is_open |= column.unclear
        for places, numbers in found:
            is_known = ~is_open[places]
            self._places.append(places[is_known] + first)
            self._numbers.append(numbers[is_known])
        return is_open

    def _of_values(self, column: RowValues) -> tuple[Int64, Int64]:
        """The places of rows that have a value, and the number of its group."""
        show = column.texts or self._field.show or int
        groups = by_distinct(column.values[column.present], lambda value: self._number(show(value)), np.int64)
        has_one = groups != _NO_GROUP
        return np.flatnonzero(column.present)[has_one], groups[has_one]

    def _of_sets(self, numbers: Int64, sets: Sequence[Collection[object]]) -> tuple[Int64, Int64]:
        """The same of a set of values by number."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        groups = [[self._number(value) for value in sets[number]] for number in distinct.tolist()]
        sizes = np.array([len(each) for each in groups], np.int64)
        whole = np.array([number for each in groups for number in each], np.int64)
        return owners(sizes[inverse]), whole[expanded(begins(sizes)[inverse], sizes[inverse])]

    def _number(self, value: object) -> int:
        return _NO_GROUP if value is None else self._keys.of(_key(self._field, value))

    def add(self, place: int, exchange: Exchange) -> None:
        """Add a decoded row."""
        numbers = [self._keys.of(key) for key in group_keys(self._field, exchange)]
        self._places.append(np.full(len(numbers), place))
        self._numbers.append(np.array(numbers, np.int64))

    def of_rows(self) -> tuple[Int64, Int64]:
        """The places of rows, ascending, each as often as it has groups, and the number of the group."""
        places, numbers = np.concatenate(self._places), np.concatenate(self._numbers)
        _, first = np.unique(places << 32 | numbers, return_index=True)
        first = first[np.lexsort((first, places[first]))]
        return places[first], numbers[first]


def group_keys(field: RowField, exchange: Exchange) -> list[str]:
    """The groups of an exchange, each once, by the values of a field as text."""
    values = field.values(exchange) if field.has_several_values else (field.from_exchange(exchange),)
    return [_key(field, value) for value in dict.fromkeys(values) if value is not None]


def _key(field: RowField, value: object) -> str:
    if field.type not in RANGES or not isinstance(value, int):
        return str(value)
    if field.type is FieldType.TIME:
        return datetime.fromtimestamp(value // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if value <= 0:
        return "0"
    low = 10 ** (len(str(value)) - 1)
    return f"{_short(low)} to {_short(10 * low)}"


def _short(nanoseconds: int) -> str:
    return f"{nanoseconds} ns" if nanoseconds < 1_000 else duration(nanoseconds)


ROWS_PER_STEP: Final = 1 << 14
DECODED_PER_STEP: Final = 256


class RowFieldPass:
    """Counts the rows of a capture, or the given ones (from 0, ascending), by a row field into `counts`."""

    def __init__(self, capture: Capture, field: RowField, rows: Int64 | None = None) -> None:
        self._capture = capture
        self._field = field
        self._rows = np.arange(len(capture)) if rows is None else rows
        self.counts = CountsByKey[str]()

    def steps(self) -> Iterator[StatisticsProgress]:
        """Count. `counts` is complete after the last step."""
        done, total = 0, len(self._rows)
        for start in range(0, total, ROWS_PER_STEP):
            rows = self._rows[start : start + ROWS_PER_STEP]
            for _ in self._capture.findings.examine_messages(rows):
                yield StatisticsProgress(done, total)
            for _ in self._count(rows):
                yield StatisticsProgress(done, total)
            done += len(rows)
            yield StatisticsProgress(done, total)

    def _count(self, rows: Int64) -> Iterator[None]:
        """Count rows by columns; those of which they do not tell all are decoded, in short steps."""
        entries, columns = self._capture.index.field_columns(rows)
        indexed = self._capture.index.numbers(rows)
        measures = MeasureColumns.of(indexed)._replace(unanswered=are_unanswered(indexed)).where(np.arange(len(rows)))
        groups = RowGroups(self._field)
        is_open = np.ones(len(rows), np.bool_)
        is_open[entries:] = groups.add_columns(columns, entries)
        measures.error[entries:] = has_error_response(columns)
        decoded = np.flatnonzero(is_open)
        for start in range(0, len(decoded), DECODED_PER_STEP):
            some = decoded[start : start + DECODED_PER_STEP]
            for place, exchange in zip(some.tolist(), self._capture.at(rows[some]), strict=True):
                groups.add(place, exchange)
                measures.set(place, RowMeasures.of(exchange))
            yield
        places, numbers = groups.of_rows()
        add_by_key(self.counts, groups.keys, numbers, measures.where(places))


def has_error_response(rows: IndexRows) -> Bool:
    """Which rows have an error in the response, `(n,)`, of those that were examined."""
    numbers, codes = rows.findings().sources[0]
    has: Bool = np.array([ERROR_RESPONSE in each for each in codes], np.bool_)[numbers]
    return has


def groups(field: RowField, counts: CountsByKey[str]) -> list[StatsGroup]:
    """The groups, the largest first; times in their order."""
    ranked = counts.ranked()
    if field.type is FieldType.TIME:
        ranked.sort(key=lambda group: group[0])
    key = field.json_key or field.name
    return [
        StatsGroup(value, each, "" if field.type in RANGES else f"{field.name} == {quoted(value)}", {key: value})
        for value, each in ranked
    ]
