"""Statistics of tables, counted in SQL: the same values as from the captures.

Latencies are counted in the buckets of `analysis.stats.Histogram`. So percentiles are the same, and little data comes
from the engine, however many rows there are.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

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
from dissector.analysis.stats.exchange_contents import record_bytes_by_topic
from dissector.analysis.stats.field_bytes import SAMPLE_SIZE, MessageKind, MessageSample, paths_of
from dissector.analysis.stats.histogram import SLOTS, STEPS, Histogram, LatencyOverTime, slot_ns
from dissector.analysis.stats.latency_parts import PARTS, PartsByApi
from dissector.analysis.stats.row_field_counts import group_keys
from dissector.exchange.info_column import ERROR_RESPONSE
from dissector.exchange.model import STORED, Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.row_findings import ACKS_0
from dissector.filter import Filter
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.enums import ERROR_CODE, number_of
from dissector.tables.engine import Dialect, Row
from dissector.tables.reader import Tables

_API: Final = ("api_key", "api_version")
_CLIENT: Final = ("client_id", "software_name", "software_version")
_MEASURED: Final = (
    "number", "place", "client", "server", *_API, *_CLIENT, "latency_ns", "may_wait", "sent", "back", "error",
    "unanswered",
)  # fmt: skip
_TOPIC_ROWS: Final = pa.schema([
    ("number", pa.int64()), ("place", pa.int64()), ("topic", pa.string()), ("topic_partition", pa.int64()),
    ("sent", pa.int64()), ("back", pa.int64()), ("error", pa.int64()), ("unanswered", pa.int64()),
    ("latency_ns", pa.int64()), ("may_wait", pa.bool_()),
])  # fmt: skip
"""One row for each topic, and for each partition of it, that an exchange names."""
_BY_VALUE: Final = pa.schema([
    ("number", pa.int64()), ("place", pa.int64()), ("value", pa.string()), ("sent", pa.int64()), ("back", pa.int64()),
    ("error", pa.int64()), ("unanswered", pa.int64()), ("latency_ns", pa.int64()),
    ("may_wait", pa.bool_()),
])  # fmt: skip
"""One row for each value of a row field in an exchange."""
_TRACED: Final = pa.schema([("traced", pa.binary())])


def statistics(tables: Tables, row_filter: Filter | None, *, bodies: bool = True) -> Statistics:
    """Return the statistics of the matching rows; those of topics, partitions and fields only with `bodies`."""
    result = Statistics()
    engine = tables.engine
    engine.define("measured_rows", _measured(tables.matching(row_filter), engine.dialect), kept=True)
    for row in engine.rows("SELECT kind, count(*) AS n FROM measured_rows GROUP BY kind ORDER BY kind"):
        kind = "entry" if row["kind"] in STORED else row["kind"]
        result.kinds[kind] = result.kinds.get(kind, 0) + row["n"]
    engine.define("measured", "SELECT * FROM measured_rows WHERE kind = 'exchange'")
    _count_into(tables, result.apis, "measured", _API, _api, first=_API)
    _count_into(tables, result.clients, "measured", _CLIENT, _client, first=("conn", "number"))
    _count_into(
        tables, result.connections, "measured", ("conn", "client", "server"),
        lambda row: StatsConnection(row["conn"], row["client"], row["server"]),
    )  # fmt: skip
    columns = ", ".join(f"0 AS {name}" if name == "error" else name for name in _MEASURED)
    engine.define("requests", f"SELECT {columns} FROM measured WHERE api_key IS NOT NULL")  # errors counted elsewhere
    _count_into(
        tables, result.used_versions, "requests", (*_CLIENT, "server", *_API),
        lambda row: VersionUse(_client(row), row["server"], *_api(row)),
    )  # fmt: skip
    each = engine.dialect.each("errors", "name")
    engine.define("wrong", f"SELECT measured.*, name FROM measured{each} WHERE error = 1")
    _count_into(
        tables, result.errors, "wrong", ("api_key", "name"), lambda row: ApiError(_api_key(row), _code(row["name"]))
    )
    for tally in result.apis.counts.values():
        result.total.merge(tally)
    result.total.merge(result.apis.others)
    _add_parts(tables, result.parts)
    _add_advertised_versions(tables, result)
    if bodies:
        _add_bodies(tables, row_filter, result)
    return result


def _add_parts(tables: Tables, found: PartsByApi) -> None:
    """Add where the time of the measured rows goes."""
    for name in PARTS:
        bucket = _bucket(name)
        for row in tables.engine.rows(
            f"SELECT {', '.join(_API)}, bucket, count(*) AS n, min({name}) AS least, max({name}) AS most FROM"
            f" (SELECT *, {bucket} AS bucket FROM measured WHERE latency_ns IS NOT NULL AND {name} IS NOT NULL)"
            f" AS bucketed GROUP BY {', '.join(_API)}, bucket ORDER BY {', '.join(_API)}, bucket"
        ):
            histogram = found.of(_api(row)).histograms[name]
            histogram.add_counts({row["bucket"]: row["n"]}, row["least"], row["most"])


def counts_by(tables: Tables, row_filter: Filter | None, name: str) -> CountsByKey[str]:
    """Count the matching rows by the value of a row field."""
    counts = CountsByKey[str]()
    values = tables.converted_view(row_filter, partial(_values, name), _BY_VALUE)
    _count_into(tables, counts, values, ("value",), lambda row: row["value"])
    return counts


def _values(name: str, exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    for exchange in exchanges:
        out, back, has_error, is_unanswered, *latency = RowMeasures.of(exchange)
        for place, key in enumerate(group_keys(ROW_FIELDS[name], exchange)):
            yield exchange.fields.number, place, key, out, back, int(has_error), int(is_unanswered), *latency


def over_time(tables: Tables, row_filter: Filter | None) -> LatencyOverTime | None:
    """Return latencies over time; None if there is no response."""
    engine = tables.engine
    responses = "kind = 'exchange' AND latency_ns IS NOT NULL"
    engine.define("answered", f"SELECT * FROM ({tables.matching(row_filter)}) AS matching WHERE {responses}")
    [ends] = engine.rows("SELECT min(time_ns) AS least, max(time_ns) AS most FROM answered")
    begin, end = ends["least"], ends["most"]
    if begin is None:
        return None
    slot = engine.dialect.quotient(f"time_ns - {begin}", slot_ns(begin, end))
    slots = tuple(Histogram() for _ in range(SLOTS))
    for row in engine.rows(
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


def _measured(sql: str, dialect: Dialect) -> str:
    """Return a query of rows with the columns to count."""

    def has_finding(code: str) -> str:
        return dialect.any_of("findings", lambda each: f"{each}.code = '{code}'")

    has_request, has_response = "request_size IS NOT NULL", "response_size IS NOT NULL"
    has_errors = dialect.any_of("errors", lambda each: f"{each} IS NOT NULL")
    waiting = ", ".join(str(int(key)) for key in sorted(WAITING))
    return (
        f"SELECT number, 0 AS place, capture, packet, start, connection, conn, client, server, kind, {', '.join(_API)},"
        f" {', '.join(_CLIENT)}, latency_ns, {', '.join(PARTS)}, errors,"
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
    """Count rows by the columns `by`. Keys are added in the order of the smallest `first` of their rows."""
    names = ", ".join(by)
    buckets = (
        f"SELECT {names}, may_wait, bucket, count(*) AS n, {tables.engine.dialect.least(first)} AS begins,"
        " sum(sent) AS sent, sum(back) AS back, sum(error) AS error, sum(unanswered) AS unanswered,"
        " min(latency_ns) AS least, max(latency_ns) AS most"
        f" FROM (SELECT *, {_BUCKET} AS bucket FROM {view}) AS bucketed"
        f" GROUP BY {names}, may_wait, bucket"
    )
    sql = (
        f"SELECT *, min(begins) OVER (PARTITION BY {names}) AS key_begins FROM ({buckets}) AS counted"
        f" ORDER BY key_begins, {names}"
    )
    for _, of_key in groupby(tables.engine.rows(sql), key=lambda row: [row[name] for name in by]):
        rows = list(of_key)
        group.of(key(rows[0])).merge(_tally(rows))


def _tally(buckets: Iterable[Row]) -> ExchangeCounts:
    tally = ExchangeCounts()
    for each in buckets:
        count, sent, back, errors, unanswered = (
            int(each[name]) for name in ("n", "sent", "back", "error", "unanswered")
        )
        tally.merge(ExchangeCounts(count, sent, back, errors, unanswered))
        if each["bucket"] is not None:
            latencies = tally.waits if each["may_wait"] else tally.latency
            latencies.add_counts({each["bucket"]: each["n"]}, each["least"], each["most"])
    return tally


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
    ranges = tables.engine.dialect.each_range("offered", ("api_key", "low", "high"))
    for row in tables.engine.rows(
        "SELECT server, api_key, min(low) AS low, max(high) AS high FROM (SELECT * FROM connections WHERE connection IN"
        f" (SELECT connection FROM measured)) AS used{ranges} GROUP BY server, api_key"
    ):
        if row["server"] in result.advertised_versions or len(result.advertised_versions) < MAX_KEYS:
            known = result.advertised_versions.setdefault(row["server"], {})
            if row["api_key"] is not None:
                widen_span(known, row["api_key"], VersionSpan(row["low"], row["high"]))


def _add_bodies(tables: Tables, row_filter: Filter | None, result: Statistics) -> None:
    """Add what is in bodies: topics and partitions, and the bytes of fields, of a sample."""
    engine = tables.engine
    engine.define(
        "topic_rows", f"SELECT * FROM {tables.converted_view(row_filter, _topic_rows, _TOPIC_ROWS)}", kept=True
    )
    engine.define("whole_topics", "SELECT * FROM topic_rows WHERE topic_partition IS NULL")
    engine.define("partitions", "SELECT * FROM topic_rows WHERE topic_partition IS NOT NULL")
    _count_into(tables, result.topics, "whole_topics", ("topic",), lambda row: row["topic"])
    _count_into(
        tables, result.partitions, "partitions", ("topic", "topic_partition"),
        lambda row: TopicPartition(row["topic"], row["topic_partition"]),
    )  # fmt: skip
    apis = ", ".join(_API)
    for row in engine.rows(
        f"SELECT {apis}, count(CASE WHEN sent > 0 THEN 1 END) AS requests, sum(sent) AS sent,"
        f" count(CASE WHEN back > 0 THEN 1 END) AS responses, sum(back) AS back FROM measured GROUP BY {apis}"
        f" ORDER BY {apis} NULLS FIRST"
    ):
        for side, count, size in (("request", "requests", "sent"), ("response", "responses", "back")):
            if row[count]:
                result.fields.kinds[MessageKind(*_api(row), side)] = MessageSample(int(row[count]), int(row[size]))
    place = f"row_number() OVER (PARTITION BY {apis} ORDER BY md5(concat_ws('/', capture, packet, start)))"
    sample = f"SELECT number FROM (SELECT number, {place} AS nth FROM measured) AS placed WHERE nth <= {SAMPLE_SIZE}"
    for row in engine.rows(f"SELECT * FROM {tables.converted_view(None, _traced_messages, _TRACED, of=sample)}"):
        kind, size, paths = pickle.loads(row["traced"])
        result.fields.of(kind).add_traced(size, paths)


def _topic_rows(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    for exchange in exchanges:
        row = exchange.fields
        if row.kind != "exchange":
            continue
        latency = row.latency_ns, exchange.api_key in WAITING
        for place, (subject, (out, back, error)) in enumerate(record_bytes_by_topic(exchange).items()):
            topic_partition = (subject, None) if isinstance(subject, str) else subject
            yield row.number, place, *topic_partition, out, back, int(error), 0, *latency


def _traced_messages(exchanges: Iterator[Exchange]) -> Iterator[tuple[bytes]]:
    for exchange in exchanges:
        key, version = exchange.api_key, exchange.fields.version
        api = ApiVersion(-1, -1) if key is None or version is None else ApiVersion(key, version)
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            if message is not None:
                yield (pickle.dumps((MessageKind(*api, side), message.size, paths_of(message))),)
