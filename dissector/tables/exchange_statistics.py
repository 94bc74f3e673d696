"""Statistics of tables, counted in SQL: the same values as from the captures.

Latencies are counted in the buckets of `analysis.stats.Histogram`. So percentiles are the same, and little data comes
from the engine, however many rows there are.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dissector.analysis.stats.column_counts import RowMeasures
from dissector.analysis.stats.counts import (
    MAX_KEYS,
    ApiError,
    ApiVersion,
    ClientSoftware,
    CountsByKey,
    ExchangeCounts,
    Statistics,
    StatsConnection,
    TopicPartition,
    VersionSpan,
    VersionUse,
    widen_span,
)
from dissector.analysis.stats.histogram import SLOTS, STEPS, Histogram, LatencyOverTime, slot_ns
from dissector.analysis.stats.latency_parts import PARTS, PartsByApi
from dissector.analysis.stats.row_field_counts import group_keys
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.model import STORED
from dissector.exchange.row_field import RowField
from dissector.exchange.row_findings import ACKS_0
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.enums import ERROR_CODE, number_of
from dissector.tables.field_samples import sample_fields
from dissector.tables.reader import Tables
from dissector.tables.sql import Row, any_of
from dissector.tables.topic_mentions import define_topic_rows

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter

_API: Final = ("api_key", "api_version")
_CLIENT: Final = ("client_id", "software_name", "software_version")
_MEASURED: Final = (
    "number", "place", "client", "server", *_API, *_CLIENT, "latency_ns", "bucket", "may_wait", "sent", "back", "error",
    "unanswered",
)  # fmt: skip
_BY_VALUE: Final = {
    "number": "BIGINT", "place": "BIGINT", "value": "VARCHAR", "sent": "BIGINT", "back": "BIGINT", "error": "BIGINT",
    "unanswered": "BIGINT", "latency_ns": "BIGINT", "may_wait": "BOOLEAN",
}  # fmt: skip
"""Columns of a row for each value of a row field in an exchange."""
_SUMS: Final = ("n", "sent", "back", "error", "unanswered")


def statistics(tables: Tables, row_filter: "Filter | None", *, bodies: bool = True) -> Statistics:
    """Return the statistics of the matching rows; those of topics, partitions and fields only with `bodies`."""
    result = Statistics()
    database = tables.database
    database.define("measured_rows", _measured(tables.matching(row_filter)), kept=True)
    for row in database.rows("SELECT kind, count(*) AS n FROM measured_rows GROUP BY kind ORDER BY kind"):
        kind = "entry" if row["kind"] in STORED else row["kind"]
        result.kinds[kind] = result.kinds.get(kind, 0) + row["n"]
    database.define("measured", "SELECT * FROM measured_rows WHERE kind = 'exchange'")
    _count_into(tables, result.apis, "measured", _API, _api, first=_API)
    _count_into(tables, result.clients, "measured", _CLIENT, _client, first=("conn", "number"))
    _count_into(
        tables, result.connections, "measured", ("conn", "client", "server"),
        lambda row: StatsConnection(row["conn"], row["client"], row["server"]),
    )  # fmt: skip
    columns = ", ".join(f"0 AS {name}" if name == "error" else name for name in _MEASURED)
    database.define("requests", f"SELECT {columns} FROM measured WHERE api_key IS NOT NULL")  # errors counted elsewhere
    _count_into(
        tables, result.used_versions, "requests", (*_CLIENT, "server", *_API),
        lambda row: VersionUse(_client(row), row["server"], *_api(row)),
    )  # fmt: skip
    database.define("wrong", "SELECT *, unnest(errors) AS name FROM measured WHERE error = 1")
    _count_into(
        tables, result.errors, "wrong", ("api_key", "name"), lambda row: ApiError(_api_key(row), _code(row["name"]))
    )
    for tally in result.apis.counts.values():
        result.total.merge(tally)
    result.total.merge(result.apis.others)
    _add_parts(tables, result.parts)
    _add_advertised_versions(tables, result)
    if bodies:
        _add_bodies(tables, result)
    return result


def _add_parts(tables: Tables, found: PartsByApi) -> None:
    """Add where the time of the measured rows goes."""
    for name in PARTS:
        bucket = _bucket(name)
        for row in tables.database.rows(
            f"SELECT {', '.join(_API)}, bucket, count(*) AS n, min({name}) AS least, max({name}) AS most FROM (SELECT"
            f" * REPLACE ({bucket} AS bucket) FROM measured WHERE latency_ns IS NOT NULL AND {name} IS NOT NULL)"
            f" AS bucketed GROUP BY {', '.join(_API)}, bucket ORDER BY {', '.join(_API)}, bucket"
        ):
            histogram = found.of(_api(row)).histograms[name]
            histogram.add_counts({row["bucket"]: row["n"]}, row["least"], row["most"])


def counts_by(tables: Tables, row_filter: "Filter | None", field: RowField) -> CountsByKey[str]:
    """Count the matching rows by the value of a row field."""
    database = tables.database
    read = tables.exchanges(row_filter, bodies=field.subject is not None)
    database.define_rows("by_value", _BY_VALUE, (
        (exchange.fields.number, place, key, *measures)
        for exchange in read for measures in [RowMeasures.of(exchange)]
        for place, key in enumerate(group_keys(field, exchange))
    ))  # fmt: skip
    counts = CountsByKey[str]()
    database.define("values_of_rows", f"SELECT *, {_BUCKET} AS bucket FROM by_value")
    _count_into(tables, counts, "values_of_rows", ("value",), lambda row: row["value"])
    return counts


def over_time(tables: Tables, row_filter: "Filter | None") -> LatencyOverTime | None:
    """Return latencies over time; None if there is no response."""
    database = tables.database
    responses = "kind = 'exchange' AND latency_ns IS NOT NULL"
    database.define("answered", f"SELECT * FROM ({tables.matching(row_filter)}) AS matching WHERE {responses}")
    [ends] = database.rows("SELECT min(time_ns) AS least, max(time_ns) AS most FROM answered")
    begin, end = ends["least"], ends["most"]
    if begin is None:
        return None
    slot = f"(time_ns - {begin}) // {slot_ns(begin, end)}"
    slots = tuple(Histogram() for _ in range(SLOTS))
    for row in database.rows(
        f"SELECT slot, bucket, count(*) AS n, min(latency_ns) AS least, max(latency_ns) AS most FROM"
        f" (SELECT {slot} AS slot, {_BUCKET} AS bucket, latency_ns FROM answered) AS bucketed GROUP BY slot, bucket"
    ):
        slots[row["slot"]].add_counts({row["bucket"]: row["n"]}, row["least"], row["most"])
    return LatencyOverTime(begin, end, slots)


def _bucket(name: str) -> str:
    """Return the bucket of a duration (`histogram.buckets_of`) in SQL; null for none."""
    bits = f"length(bin({name}))"
    step = f"CAST(floor(({name} / pow(2.0, {bits}) * 2 - 1) * {STEPS}) AS INT)"
    return f"CASE WHEN {name} > 0 THEN {bits} * {STEPS} + {step} WHEN {name} IS NOT NULL THEN 0 END"


_BUCKET: Final = _bucket("latency_ns")


def _measured(sql: str) -> str:
    """Return a query of rows with the columns to count."""

    def has_finding(code: str) -> str:
        return any_of("findings", lambda each: f"{each}.code = '{code}'")

    has_request, has_response = "request_size IS NOT NULL", "response_size IS NOT NULL"
    has_errors = any_of("errors", lambda each: f"{each} IS NOT NULL")
    waiting = ", ".join(str(int(key)) for key in sorted(WAITING))
    return (
        f"SELECT number, 0 AS place, capture, packet, start, connection, conn, client, server, kind, api,"
        f" correlation_id, {', '.join(_API)}, {', '.join(_CLIENT)}, latency_ns, {_BUCKET} AS bucket,"
        f" {', '.join(PARTS)}, errors,"
        f" coalesce(api_key IN ({waiting}), FALSE) AS may_wait,"
        " coalesce(request_size, 0) AS sent, coalesce(response_size, 0) AS back,"
        f" CASE WHEN {has_request} AND NOT ({has_response}) AND NOT {has_finding(ACKS_0.code)} THEN 1 ELSE 0 END"
        " AS unanswered,"
        f" CASE WHEN {has_finding(ERROR_RESPONSE)} AND {has_errors} THEN 1 ELSE 0 END AS error"
        f" FROM ({sql}) AS matching"
    )


def _count_into(
    tables: Tables, group: CountsByKey[Any], view: str, by: tuple[str, ...], key: Callable[[Row], Any],
    first: tuple[str, ...] = ("number", "place"),
) -> None:  # fmt: skip
    """Count rows of a view, with the `bucket` of latencies, by the columns `by`. Keys are added in the order of
    the smallest `first` of their rows."""
    names = ", ".join(by)
    buckets = (
        f"SELECT {names}, may_wait, bucket, count(*) AS n, min(row({', '.join(first)})) AS begins, sum(sent) AS sent,"
        " sum(back) AS back, sum(error) AS error, sum(unanswered) AS unanswered, min(latency_ns) AS least,"
        f" max(latency_ns) AS most FROM {view} GROUP BY {names}, may_wait, bucket"
    )
    histograms = ", ".join(
        f"{aggregate}({column}) FILTER (bucket IS NOT NULL AND {condition}) AS {name}_{column}"
        for name, condition in (("usual", "NOT may_wait"), ("waits", "may_wait"))
        for aggregate, column in (("list", "bucket"), ("list", "n"), ("min", "least"), ("max", "most"))
    )
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in _SUMS)
    for row in tables.database.rows(
        f"SELECT {names}, {sums}, {histograms} FROM ({buckets}) AS counted GROUP BY {names}"
        f" ORDER BY min(begins), {names}"
    ):
        tally = ExchangeCounts(*(row[name] for name in _SUMS))
        for name, histogram in (("usual", tally.latency), ("waits", tally.waits)):
            if row[f"{name}_bucket"]:
                counts = dict(zip(row[f"{name}_bucket"], row[f"{name}_n"], strict=True))
                histogram.add_counts(counts, row[f"{name}_least"], row[f"{name}_most"])
        group.add(key(row), tally)


def _api_key(row: Row) -> int:
    """Return the API key; -1 if the request is missing."""
    return -1 if row["api_key"] is None else int(row["api_key"])


def _api(row: Row) -> ApiVersion:
    return ApiVersion(-1, -1) if row["api_key"] is None else ApiVersion(row["api_key"], row["api_version"])


def _client(row: Row) -> ClientSoftware:
    return ClientSoftware(row["client_id"], row["software_name"] or "", row["software_version"] or "")


def _code(name: str) -> int:
    """Return the code of an error. ``UNKNOWN(1234)`` is one that this release does not know."""
    code = number_of(ERROR_CODE, name)
    return int(name.removeprefix("UNKNOWN(").removesuffix(")")) if code is None else code


def _add_advertised_versions(tables: Tables, result: Statistics) -> None:
    """Add the versions that servers advertised on the connections of the measured rows."""
    used = "SELECT server, offered FROM connections WHERE connection IN (SELECT connection FROM measured)"
    found = result.advertised_versions
    for row in tables.database.rows(f"SELECT offered, list(DISTINCT server) AS servers FROM ({used}) GROUP BY offered"):
        spans = {key: VersionSpan(span["low"], span["high"]) for key, span in row["offered"] or ()}
        for server in row["servers"]:
            if server not in found and len(found) < MAX_KEYS:
                found[server] = dict(spans)
            elif server in found:
                for key, span in spans.items():
                    widen_span(found[server], key, span)


def _add_bodies(tables: Tables, result: Statistics) -> None:
    """Add what is in bodies: topics and partitions, and the bytes of fields, of a sample."""
    tables.require_bodies()
    define_topic_rows(tables.database)
    tables.database.define("whole_topics", "SELECT * FROM topic_rows WHERE topic_partition IS NULL")
    tables.database.define("partition_rows", "SELECT * FROM topic_rows WHERE topic_partition IS NOT NULL")
    _count_into(tables, result.topics, "whole_topics", ("topic",), lambda row: row["topic"])
    _count_into(
        tables, result.partitions, "partition_rows", ("topic", "topic_partition"),
        lambda row: TopicPartition(row["topic"], row["topic_partition"]),
    )  # fmt: skip
    sample_fields(tables, result.fields)
