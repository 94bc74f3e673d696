"""Counts of rows by the value of any row field.

Rows are counted in columns as far as the index and their findings tell the values; the others are decoded.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.analysis.stats.breakdowns import StatsGroup, quoted
from dissector.analysis.stats.column_counts import MeasureColumns, RowMeasures, add_by_key, are_unanswered
from dissector.analysis.stats.counts import CountsByKey
from dissector.analysis.stats.row_groups import RANGES, RowGroups
from dissector.analysis.stats.statistics_pass import StatisticsProgress
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.info_column import ERROR_RESPONSE
from dissector.exchange.row_field import FieldType, RowField

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
        measures = MeasureColumns.of(indexed, np.arange(len(rows)))._replace(unanswered=are_unanswered(indexed))
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
