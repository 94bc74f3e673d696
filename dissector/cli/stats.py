"""`kdissect stats`: counts as tables, or as JSON objects, one per line.

In a table numbers come first, within 80 columns, and names last, so that names are never cut.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissector.analysis.stats.breakdowns import (
    BREAKDOWNS,
    StatsGroup,
    api_label,
    api_name,
    counts_object,
    group_object,
)
from dissector.analysis.stats.counts import LATENCY_NOTE, ApiVersion, CountsByKey, ExchangeCounts, Statistics
from dissector.analysis.stats.histogram import PERCENTILES, LatencyOverTime
from dissector.analysis.stats.latency_parts import PARTS, parts_object
from dissector.analysis.stats.row_field_counts import RowFieldPass, groups
from dissector.analysis.stats.statistics_pass import ROWS_PER_STEP, StatisticsPass
from dissector.capture_session import Capture
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.formats import StatsFormat
from dissector.cli.options import CaptureOptions, no_match_message, parse_filter
from dissector.cli.render.pages import DIM, NAME, NOTE, print_lines, write_out
from dissector.cli.render.pages import Line as Styled
from dissector.cli.render.plots import plots
from dissector.cli.render.progress import examine_with_progress, step_with_progress
from dissector.cli.show import read_rows
from dissector.cli.tables import are_tables, no_rows_message, open_tables, summary
from dissector.cli.wrong_listeners import print_wrong_listeners
from dissector.core.arrays import Int64
from dissector.core.json_text import dumps
from dissector.core.process_memory import infrequent_collection
from dissector.core.suggestions import did_you_mean
from dissector.core.text import byte_size, counted, duration, size
from dissector.exchange.row_field import RowField
from dissector.exchange.row_fields import ROW_FIELDS

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter

_NONE: Final = np.zeros(0, np.int64)
FIRST: Final = 10
"""Lines of each table when all tables are printed."""
_HEAD: Final = ("count", "out", "in", "err", "p50", "p90", "p99", "max")
_WIDTHS: Final = (8, 6, 6, 5, 9, 9, 9, 9)
FIELD_BYTES: Final = "field"
PARTS_OF_LATENCY: Final = "part"
_HEADINGS: Final = {
    "api": "APIs", "client": "Clients", "connection": "Connections", "topic": "Topics (records)",
    "partition": "Partitions (records)", "version": "Versions", "error": "Errors", FIELD_BYTES: "Fields",
    PARTS_OF_LATENCY: "Parts",
}  # fmt: skip
"""The tables that are printed without ``--by``, in this order; `partition` only with it."""
_DECODING: Final = (None, "topic", "partition", FIELD_BYTES)
"""The tables that need decoded messages."""


def breakdown(name: str | None) -> str | RowField | None:
    """Return the table for ``--by NAME``: one of the usual tables, or any row field. Raises `UsageError`."""
    if name in (None, FIELD_BYTES, PARTS_OF_LATENCY):
        return name
    field = ROW_FIELDS.get(name)
    if field is None and name not in _HEADINGS:
        names = dict.fromkeys((*_HEADINGS, *ROW_FIELDS))
        hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
        raise UsageError(f"--by: unknown field {name!r}{hint}")
    known = (name, *(field.names if field is not None else ()))
    return next((each for each in known if each in _HEADINGS), field)


def stats(
    files: Sequence[str],
    by: str | None,
    form: StatsFormat,
    filter: str | None,
    *,
    plot: bool,
    connections: bool = False,
    options: CaptureOptions,
) -> int:
    """Count and print tables, or plots; return the exit code: 0, or 1 if there is no Kafka or no row matches the
    filter."""
    row_filter, table = parse_filter(filter, options=options), breakdown(by)
    if plot and (by is not None or form is not StatsFormat.TEXT):
        raise UsageError("--plot can't be used with --by or --format")
    if connections and (by is not None or plot):
        raise UsageError("--connections can't be used with --by or --plot")
    if are_tables(files, options):
        if connections:
            raise UsageError("--connections is for captures; tables have the table connections")
        return _stats_of_tables(files[0], table, form, row_filter, plot=plot)
    with infrequent_collection(), options.open(files) as capture:
        if not read_rows(capture):
            return NEGATIVE
        print_wrong_listeners(capture)
        if any(each.reads_findings for each in (row_filter, table) if each is not None and not isinstance(each, str)):
            examine_with_progress(capture)
        rows = None
        if row_filter is not None:
            rows = np.concatenate([_NONE, *(selected.rows for selected in capture.select(row_filter))])
            if not len(rows):
                print_error(no_match_message(row_filter, len(capture)))
                return NEGATIVE
        if connections:
            from dissector.cli.connections import write_connections

            return write_connections(capture, rows, form)
        if isinstance(table, RowField):
            by_field = RowFieldPass(capture, table, rows)
            step_with_progress(by_field.steps(), "counting")
            return _write_groups(table, by_field.counts, form)
        counting = StatisticsPass(capture, rows)
        step_with_progress(counting.steps(ROWS_PER_STEP), "counting")
        if plot:
            return print_lines(plots(_over_time(capture, rows), counting.statistics))
    return _write(counting.statistics, table, form)


def _stats_of_tables(
    folder: str,
    by: str | RowField | None,
    form: StatsFormat,
    row_filter: "Filter | None",
    *,
    plot: bool,
) -> int:
    with infrequent_collection(), open_tables(folder) as tables:
        from dissector.tables.exchange_statistics import counts_by, over_time, statistics

        if isinstance(by, RowField):
            by_value, rows = counts_by(tables, row_filter, by), tables.counted(row_filter)
        else:
            counts = statistics(tables, row_filter, bodies=by in _DECODING)
            rows = sum(counts.kinds.values())
        if not rows:
            print_error(no_rows_message(folder, tables, row_filter))
            return NEGATIVE
        latencies = over_time(tables, row_filter) if plot else None
        captures_read = summary(folder, tables, rows)
    if isinstance(by, RowField):
        code = _write_groups(by, by_value, form)
    else:
        code = print_lines(plots(latencies, counts)) if plot else _write(counts, by, form)
    print(captures_read, file=sys.stderr)
    return code


def _over_time(capture: Capture, rows: Int64 | None) -> LatencyOverTime | None:
    """Return latencies over time of these rows, or of all; None without a response."""
    columns = capture.index.numbers(np.arange(len(capture)) if rows is None else rows)
    complete = columns.where(columns.has_latency)
    return LatencyOverTime.of(complete.request_time_ns, complete.latency_ns)


def _write(statistics: Statistics, by: str | None, form: StatsFormat) -> int:
    if form is StatsFormat.JSON:
        return write_out(_json_lines(statistics, by))
    return print_lines(_tables(statistics, by))


def _write_groups(field: RowField, counts: CountsByKey[str], form: StatsFormat) -> int:
    """Print the groups of one row field."""
    found = groups(field, counts)
    if not found:
        print_error(f"no row has {field.name}")
        return NEGATIVE
    if form is StatsFormat.JSON:
        return write_out(_json_line(group_object(field.name, group)) for group in found)
    return print_lines(_table_of(field.heading, found))


def _tables(statistics: Statistics, by: str | None) -> Iterator[Styled]:
    if by is not None:
        yield from _table(statistics, by, None)
        return
    yield [(_summary(statistics), "")]
    yield [(LATENCY_NOTE, DIM)]
    for each in _HEADINGS:
        if each != "partition":  # partitions are many, and those of one topic much the same
            yield from _table(statistics, each, FIRST)


def _summary(statistics: Statistics) -> str:
    """Return one line about all rows."""
    total = statistics.total
    rest = "".join(f", {count:,} {kind}" for kind, count in statistics.kinds.items() if kind != "exchange")
    return (
        f"{counted(total.exchanges, 'exchange')}{rest}; {byte_size(total.bytes_out)} out, "
        f"{byte_size(total.bytes_in)} in; "
        f"{total.errors:,} with errors, {total.unanswered:,} unanswered"
    )


def _table(statistics: Statistics, by: str, most: int | None) -> Iterator[Styled]:
    if by == FIELD_BYTES:
        yield from _fields(statistics, most)
        return
    if by == PARTS_OF_LATENCY:
        yield from _parts(statistics, most)
        return
    lines, count = BREAKDOWNS[by].first(statistics, most)
    yield from _table_of(_HEADINGS[by], lines)
    if most is not None and count > most:
        yield [(f"{count - most:>{_WIDTHS[0]},} more lines: --by {by}", NOTE)]


def _table_of(heading: str, lines: Sequence[StatsGroup]) -> Iterator[Styled]:
    if not lines:
        return
    yield []
    head = "".join(f"{name:>{width}}" for name, width in zip(_HEAD, _WIDTHS, strict=True))
    yield [(f"{head}  {heading}", DIM)]
    for line in lines:
        yield [(_numbers(line.counts), ""), (f"  {line.label}", NAME)]


def _numbers(counts: ExchangeCounts) -> str:
    latencies = [counts.usual_latency.percentile(percent) for percent in PERCENTILES] + [counts.usual_latency.most]
    cells = [
        f"{counts.exchanges:,}", size(counts.bytes_out), size(counts.bytes_in),
        f"{counts.errors:,}" if counts.errors else "",
        *("" if ns is None else duration(ns) for ns in latencies),
    ]  # fmt: skip
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _parts(statistics: Statistics, most: int | None) -> Iterator[Styled]:
    """Yield the table of the parts of latencies."""
    found = statistics.parts.ranked()[:most]
    if not found:
        return
    yield []
    yield [(f"{'latency:':>8}{'send':>18}{'wait':>18}{'receive':>18}", DIM)]
    yield [(f"{'count':>8}" + f"{'p50':>9}{'p99':>9}" * len(PARTS) + f"  {_HEADINGS[PARTS_OF_LATENCY]}", DIM)]
    for of, parts in found:
        cells = (each.percentile(at) or 0 for each in parts.histograms.values() for at in (50, 99))
        numbers = "".join(f"{duration(ns) if ns else '0':>9}" for ns in cells)
        yield [(f"{parts.exchanges:>8,}{numbers}", ""), (f"  {api_label(ApiVersion(*of))}", NAME)]


def _fields(statistics: Statistics, most: int | None) -> Iterator[Styled]:
    """Yield the table of fields, those with the most bytes first."""
    fields = _ranked_fields(statistics)
    if not fields:
        return
    total = sum(count for count, _, _ in fields)
    traced = statistics.fields.traced
    estimate = "" if statistics.fields.is_complete else f", estimated from {counted(traced, 'message')}"
    yield []
    yield [(f"{'bytes':>8}{'share':>8}  Fields{estimate}", DIM)]
    for count, kind, path in fields[:most]:
        yield [(f"{size(count):>9}{count / total:>8.1%}", ""), (f"  {kind} {path}", NAME)]
    if most is not None and len(fields) > most:
        yield [(f"{len(fields) - most:>9,} more lines: --by field", NOTE)]


def _ranked_fields(statistics: Statistics) -> list[tuple[int, str, str]]:
    """Return bytes, API with version, and path of each field, those with the most bytes first."""
    found = [
        (count, api_label(ApiVersion(kind.api_key, kind.version)), f"{kind.side}.{path}")
        for kind, sample in statistics.fields.kinds.items()
        for path, count in sample.estimated()
    ]
    return sorted(found, key=lambda each: (-each[0], *each[1:]))


def _json_lines(statistics: Statistics, by: str | None) -> Iterator[bytes]:
    if by is None:
        yield _json_line({"by": "total", "rows": statistics.kinds} | counts_object(statistics.total))
    for each in _HEADINGS if by is None else (by,):
        if each == FIELD_BYTES:
            yield from map(_json_line, _field_objects(statistics))
        elif each == PARTS_OF_LATENCY:
            for of, parts in statistics.parts.ranked():
                api = {"api_key": of[0], "api": api_name(of[0]), "api_version": of[1]}
                yield _json_line({"by": PARTS_OF_LATENCY} | api | parts_object(parts))
        else:
            yield from (_json_line(group_object(each, line)) for line in BREAKDOWNS[each](statistics))


def _field_objects(statistics: Statistics) -> Iterator[dict[str, Any]]:
    for kind, sample in statistics.fields.kinds.items():
        for path, count in sample.estimated():
            yield {
                "by": "field", "api": api_name(kind.api_key),
                "api_version": kind.version, "path": f"{kind.side}.{path}", "bytes": count,
                "messages": sample.messages, "messages_traced": sample.traced,
            }  # fmt: skip


def _json_line(value: dict[str, Any]) -> bytes:
    return dumps(value) + b"\n"
