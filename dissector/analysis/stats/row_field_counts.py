"""Counts of rows by the value of any row field.

A row counts under each of its values, and not at all without one. Times are grouped by second, durations by power of
ten.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.breakdowns import StatsGroup, quoted
from dissector.analysis.stats.counts import CountsByKey
from dissector.analysis.stats.statistics_pass import StatisticsProgress
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import duration
from dissector.exchange.info_column import ERROR_RESPONSE
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import FieldType, RowField
from dissector.exchange.row_findings import ACKS_0
from dissector.protocol.schema.waiting import WAITING

ROWS_PER_STEP: Final = 256
"""Rows decoded in one step."""
_SECOND: Final = 10**9
_RANGES: Final = (FieldType.TIME, FieldType.DURATION)


class RowMeasures(NamedTuple):
    """What is counted of a row: bytes, whether the response has an error or is missing, latency in nanoseconds, and
    whether its API may wait on purpose."""

    bytes_out: int
    bytes_in: int
    has_error: bool
    is_unanswered: bool
    latency_ns: int | None
    may_wait: bool

    @classmethod
    def of(cls, exchange: Exchange) -> "RowMeasures":
        """The measures of one row."""
        row = exchange.fields
        codes = {finding.code for finding in exchange.row_findings}
        is_missing = row.kind == "exchange" and row.request_size is not None and row.response_size is None
        return cls(
            row.request_size or 0, row.response_size or 0, ERROR_RESPONSE in codes,
            is_missing and ACKS_0.code not in codes, row.latency_ns, exchange.api_key in WAITING,
        )  # fmt: skip


class RowFieldPass:
    """Counts the rows of a capture, or the given ones (from 0, ascending), by a row field into `counts`."""

    def __init__(self, capture: Capture, field: RowField, rows: Int64 | None = None) -> None:
        self._capture = capture
        self._field = field
        self._rows = np.arange(len(capture)) if rows is None else rows
        self.counts = CountsByKey[str]()

    def steps(self) -> Iterator[StatisticsProgress]:
        """Count. `counts` is complete after the last step."""
        for start in range(0, len(self._rows), ROWS_PER_STEP):
            some = self._rows[start : start + ROWS_PER_STEP]
            for exchange in self._capture.at(some):
                measures = RowMeasures.of(exchange)
                for key in group_keys(self._field, exchange):
                    counts = self.counts.of(key)
                    counts.add(
                        measures.bytes_out, measures.bytes_in, error=measures.has_error, latency_ns=measures.latency_ns,
                        waits=measures.may_wait,
                    )  # fmt: skip
                    counts.unanswered += measures.is_unanswered
            yield StatisticsProgress(start + len(some), len(self._rows))


def group_keys(field: RowField, exchange: Exchange) -> list[str]:
    """The groups of an exchange, each once, by the values of a field as text."""
    values = field.values(exchange) if field.has_several_values else (field.from_exchange(exchange),)
    return [_key(field, value) for value in dict.fromkeys(values) if value is not None]


def _key(field: RowField, value: object) -> str:
    if field.type not in _RANGES or not isinstance(value, int):
        return str(value)
    if field.type is FieldType.TIME:
        return datetime.fromtimestamp(value // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if value <= 0:
        return "0"
    low = 10 ** (len(str(value)) - 1)
    return f"{_short(low)} to {_short(10 * low)}"


def _short(nanoseconds: int) -> str:
    return f"{nanoseconds}ns" if nanoseconds < 1_000 else duration(nanoseconds).replace(" ", "")


def groups(field: RowField, counts: CountsByKey[str]) -> list[StatsGroup]:
    """The groups, the largest first; times in their order."""
    ranked = counts.ranked()
    if field.type is FieldType.TIME:
        ranked.sort(key=lambda group: group[0])
    key = field.json_key or field.name
    return [
        StatsGroup(value, each, "" if field.type in _RANGES else f"{field.name} == {quoted(value)}", {key: value})
        for value, each in ranked
    ]
