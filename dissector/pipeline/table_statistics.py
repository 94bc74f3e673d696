"""Statistics of tables, counted by Spark: the same values as from the captures.

Latencies are counted in the buckets of `analysis.stats.Histogram`. So percentiles are the same, and the driver gets
little data, however many rows there are.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as f

from dissector.analysis.stats import (
    ApiError,
    ApiVersion,
    ClientSoftware,
    MessageKind,
    Statistics,
    StatsConnection,
    TopicPartition,
    VersionUse,
)
from dissector.analysis.stats.column_counts import RowMeasures
from dissector.analysis.stats.counts import MAX_KEYS, CountsByKey, ExchangeCounts, VersionSpan, widen_span
from dissector.analysis.stats.exchange_contents import record_bytes_by_topic
from dissector.analysis.stats.exchange_sampler import SAMPLE_SIZE
from dissector.analysis.stats.field_bytes import MessageSample, paths_of
from dissector.analysis.stats.histogram import STEPS, Histogram
from dissector.analysis.stats.latency_over_time import SLOTS, LatencyOverTime, slot_ns
from dissector.analysis.stats.row_groups import group_keys
from dissector.exchange.info_column import ERROR_RESPONSE
from dissector.exchange.model import STORED, Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.row_findings import ACKS_0
from dissector.filter import Filter
from dissector.pipeline.table_reader import Tables
from dissector.protocol.schema.enums import ERROR_CODE, number_of
from dissector.protocol.schema.waiting import WAITING
from dissector.tables.schemas import ROW_KEY

_API: Final = ("api_key", "api_version")
_CLIENT: Final = ("client_id", "software_name", "software_version")
_TOPIC_ROWS: Final = pa.schema([
    ("number", pa.int64()), ("place", pa.int64()), ("topic", pa.string()), ("partition", pa.int64()),
    ("out", pa.int64()), ("back", pa.int64()), ("error", pa.int64()), ("unanswered", pa.int64()),
    ("latency_ns", pa.int64()), ("may_wait", pa.bool_()),
])  # fmt: skip
"""One row for each topic, and for each partition of it, that an exchange names."""
_BY_VALUE: Final = pa.schema([
    ("number", pa.int64()), ("place", pa.int64()), ("value", pa.string()), ("out", pa.int64()), ("back", pa.int64()),
    ("error", pa.int64()), ("unanswered", pa.int64()), ("latency_ns", pa.int64()),
    ("may_wait", pa.bool_()),
])  # fmt: skip
"""One row for each value of a row field in an exchange."""
_TRACED: Final = pa.schema([("traced", pa.binary())])


def statistics(tables: Tables, row_filter: Filter | None, *, bodies: bool = True) -> Statistics:
    """Return the statistics of the matching rows; those of topics, partitions and fields only with `bodies`."""
    result = Statistics()
    rows = _measured(tables, tables.matching_rows(row_filter)).persist()
    for row in rows.groupBy("kind").count().orderBy("kind").collect():
        kind = "entry" if row.kind in STORED else row.kind
        result.kinds[kind] = result.kinds.get(kind, 0) + row["count"]
    rows = rows.where(f.col("kind") == "exchange")
    _count_into(result.apis, rows, _API, _api, first=_API)
    _count_into(result.clients, rows, _CLIENT, _client, first=("conn", "number"))
    _count_into(
        result.connections,
        rows,
        ("conn", "client", "server"),
        lambda row: StatsConnection(row.conn, row.client, row.server),
    )
    requests = rows.where(f.col("api_key").isNotNull()).withColumn("error", f.lit(0))  # errors are counted elsewhere
    _count_into(
        result.used_versions,
        requests,
        (*_CLIENT, "server", *_API),
        lambda row: VersionUse(_client(row), row.server, *_api(row)),
    )
    wrong = rows.where(f.col("error") == 1).withColumn("name", f.explode("errors"))
    _count_into(result.errors, wrong, ("api_key", "name"), lambda row: ApiError(_api_key(row), _code(row.name)))
    for tally in result.apis.counts.values():
        result.total.merge(tally)
    result.total.merge(result.apis.others)
    _add_advertised_versions(tables, rows, result)
    if bodies:
        _add_bodies(tables, row_filter, rows, result)
    rows.unpersist()
    return result


def counts_by(tables: Tables, row_filter: Filter | None, name: str) -> CountsByKey[str]:
    """Count the matching rows by the value of a row field."""
    counts = CountsByKey[str]()
    values = tables.map_exchanges(row_filter, partial(_values, name), _BY_VALUE)
    _count_into(counts, values, ("value",), lambda row: row.value)
    return counts


def _values(name: str, exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    for exchange in exchanges:
        out, back, has_error, is_unanswered, *latency = RowMeasures.of(exchange)
        for place, key in enumerate(group_keys(ROW_FIELDS[name], exchange)):
            yield exchange.fields.number, place, key, out, back, int(has_error), int(is_unanswered), *latency


def over_time(tables: Tables, row_filter: Filter | None) -> LatencyOverTime | None:
    """Return latencies over time; None if there is no response."""
    rows = tables.matching_rows(row_filter).where((f.col("kind") == "exchange") & f.col("latency_ns").isNotNull())
    [ends] = rows.agg(f.min("time_ns").alias("begin"), f.max("time_ns").alias("end")).collect()
    if ends.begin is None:
        return None
    slot = f.expr(f"(time_ns - {ends.begin}) DIV {slot_ns(ends.begin, ends.end)}")
    counts = rows.groupBy(slot.alias("slot"), _bucket().alias("bucket")).agg(
        f.count("*").alias("rows"), f.min("latency_ns").alias("least"), f.max("latency_ns").alias("most")
    )
    slots = tuple(Histogram() for _ in range(SLOTS))
    for row in counts.collect():
        slots[row.slot].add_counts({row.bucket: row["rows"]}, row.least, row.most)
    return LatencyOverTime(ends.begin, ends.end, slots)


def _bucket() -> Column:
    """Return the bucket of a latency (`histogram.buckets_of`); null without a latency."""
    waited = f.when(f.col("latency_ns") < 0, 0).otherwise(f.col("latency_ns"))
    bits = f.when(waited > 0, f.length(f.bin(waited))).otherwise(0)
    step = f.when(waited > 0, f.floor((waited / f.pow(f.lit(2.0), bits) * 2 - 1) * STEPS)).otherwise(0)
    return f.when(waited.isNotNull(), bits * STEPS + step)


def _measured(tables: Tables, rows: DataFrame) -> DataFrame:
    """Return rows with the columns to count."""
    silent, wrong = (
        tables.table("findings").where(f.col("code") == code).select(*ROW_KEY).distinct().withColumn(name, f.lit(True))
        for code, name in ((ACKS_0.code, "silent"), (ERROR_RESPONSE, "wrong"))
    )
    has_request, has_response = f.col("request_size").isNotNull(), f.col("response_size").isNotNull()
    rows = rows.join(silent, list(ROW_KEY), "left").join(wrong, list(ROW_KEY), "left")
    return rows.select(
        *ROW_KEY, "number", f.lit(0).alias("place"), "connection", "conn", "client", "server", "kind", *_API, *_CLIENT,
        "latency_ns", "errors", f.coalesce(f.col("api_key").isin(*map(int, WAITING)), f.lit(False)).alias("may_wait"),
        f.coalesce("request_size", f.lit(0)).alias("out"), f.coalesce("response_size", f.lit(0)).alias("back"),
        (has_request & ~has_response & f.col("silent").isNull()).cast("bigint").alias("unanswered"),
        (f.col("wrong").isNotNull() & (f.size("errors") > 0)).cast("bigint").alias("error"),
    )  # fmt: skip


def _count_into(
    group: CountsByKey[Any], rows: DataFrame, by: tuple[str, ...], key: Callable[[Row], Any],
    first: tuple[str, ...] = ("number", "place"),
) -> None:  # fmt: skip
    """Count rows by the columns `by`. Keys are added in the order of the smallest `first` of their rows."""
    buckets = rows.withColumn("bucket", _bucket()).groupBy(*by, "may_wait", "bucket").agg(
        f.count("*").alias("rows"), f.min(f.struct(*first)).alias("first"), f.sum("out").alias("out"),
        f.sum("back").alias("back"), f.sum("error").alias("error"), f.sum("unanswered").alias("unanswered"),
        f.min("latency_ns").alias("least"), f.max("latency_ns").alias("most"),
    )  # fmt: skip
    bucket = f.struct("may_wait", "bucket", "rows", "out", "back", "error", "unanswered", "least", "most")
    keys = buckets.groupBy(*by).agg(f.min("first").alias("first"), f.collect_list(bucket).alias("buckets"))
    for row in keys.orderBy("first").toLocalIterator():
        group.of(key(row)).merge(_tally(row.buckets))


def _tally(buckets: Iterable[Row]) -> ExchangeCounts:
    tally = ExchangeCounts()
    for each in buckets:
        tally.merge(ExchangeCounts(each["rows"], each.out, each.back, each.error, each.unanswered))
        if each.bucket is not None:
            latencies = tally.waits if each.may_wait else tally.latency
            latencies.add_counts({each.bucket: each["rows"]}, each.least, each.most)
    return tally


def _api_key(row: Row) -> int:
    """Return the API key; -1 if the request is missing."""
    return -1 if row.api_key is None else int(row.api_key)


def _api(row: Row) -> ApiVersion:
    return ApiVersion(-1, -1) if row.api_key is None else ApiVersion(row.api_key, row.api_version)


def _client(row: Row) -> ClientSoftware:
    return ClientSoftware(row.client_id, row.software_name or "", row.software_version or "")


def _code(name: str) -> int:
    """Return the code of an error. ``UNKNOWN(1234)`` is one that this release does not know."""
    code = number_of(ERROR_CODE, name)
    return int(name.removeprefix("UNKNOWN(").removesuffix(")")) if code is None else code


def _add_advertised_versions(tables: Tables, rows: DataFrame, result: Statistics) -> None:
    """Add the versions that servers advertised on the connections of the rows."""
    connections = tables.table("connections").join(rows.select("connection").distinct(), "connection", "left_semi")
    offered = connections.select("server", f.explode_outer("offered").alias("key", "range")).groupBy("server", "key")
    for row in offered.agg(f.min("range.low").alias("low"), f.max("range.high").alias("high")).toLocalIterator():
        if row.server in result.advertised_versions or len(result.advertised_versions) < MAX_KEYS:
            known = result.advertised_versions.setdefault(row.server, {})
            if row.key is not None:
                widen_span(known, row.key, VersionSpan(row.low, row.high))


def _add_bodies(tables: Tables, row_filter: Filter | None, rows: DataFrame, result: Statistics) -> None:
    """Add what is in bodies: topics and partitions, and the bytes of fields, of a sample."""
    topic_rows = tables.map_exchanges(row_filter, _topic_rows, _TOPIC_ROWS)
    _count_into(result.topics, topic_rows.where(f.col("partition").isNull()), ("topic",), lambda row: row.topic)
    parts = topic_rows.where(f.col("partition").isNotNull())
    _count_into(result.partitions, parts, ("topic", "partition"), lambda row: TopicPartition(row.topic, row.partition))
    sides = rows.groupBy(*_API).agg(
        *(f.count(f.when(f.col(side) > 0, 1)).alias(f"{side}s") for side in ("out", "back")), f.sum("out").alias("out"),
        f.sum("back").alias("back"),
    )  # fmt: skip
    for row in sides.orderBy(*_API).collect():
        for side, count, size in (("request", row.outs, row.out), ("response", row.backs, row.back)):
            if count:
                result.fields.kinds[MessageKind(*_api(row), side)] = MessageSample(count, size)
    place = f.row_number().over(Window.partitionBy(*_API).orderBy(f.hash(*ROW_KEY)))
    sample = rows.withColumn("place", place).where(f.col("place") <= SAMPLE_SIZE).select("number")
    for row in tables.map_exchanges(None, _traced_messages, _TRACED, of=sample).toLocalIterator():
        kind, size, paths = pickle.loads(row.traced)
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
