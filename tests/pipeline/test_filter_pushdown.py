"""A filter in columns of Spark answers as it does on the captures."""

import re

import pytest

from dissector.capture_session import Capture
from dissector.cli.tables import tables_of
from dissector.filter import parse
from tests.pipeline.ingested import Ingested

pytestmark = [pytest.mark.slow, pytest.mark.spark]

EXACT = (
    "api == Fetch", "api != Fetch", "!(api == Fetch)", "api in {Fetch, Produce}", "api_key == 3", "api_key > 10",
    "api == Fetch && latency > 5ms", "latency < 1ms || latency > 1s", "!(latency > 1ms)", "latency", "!latency",
    "version >= 12", "version in {0..3}", 'client_id == "kdissect"', 'client_id != ""', "client_id",
    "client_id contains client", "client contains 127", 'server == "127.0.0.1:9092"', "server != nobody",
    "conn == 3", "conn in {C2..C5}", "number < 20", "number in {7, 30..35}", "!(number > 9)", "corr == 5", "corr > 7",
    "time < 0.1s", "time > 1s", "time > 2020-01-01", "time < 2020-01-01", "size > 1k", "request.size > 100",
    "response.size < 60", "!(size > 50)", "request", "response", "!response", "!request", "kind == exchange",
    "kind != exchange", "finding", "finding == unanswered", "!finding",
    "finding in {unanswered, error-response}", "severity == warning", "severity >= note", "!(severity == warning)",
    "number > 5 && finding",
)  # fmt: skip
NARROWED = (
    "info contains rec",
    "api contains etc", "api matches '^f.*h$'", "client_id matches 'a.*o'", "error", "error == NONE", "!error",
    "error != 0 && api == Fetch", "topic", 'topic == "orders"', "topic contains o", '!(topic == "orders")',
    "partition == 0",
    "partition > 1", "group", "group matches .", "group != x", "error_code != 0", "exists request.topics.name",
    "request.max_wait_ms > 100ms", "max_wait_ms == 500", "!(max_wait_ms == 500)",
    "request.body.topics.partitions.partition == 0", "response.body.responses.partitions.error_code == 0",
    "response.responses.partitions.high_watermark > 2", 'request.header.client_id != ""', "request.acks == -1",
    "request.group_id contains o", "response.brokers.port == 9092", "response.brokers.host == 127.0.0.1",
    "response.topics.name != x", "request.topic_data.partition_data.records.batches.records.value contains a",
    "records.batches.compression == none", "records.batches.records_count > 1", "request.transactional_id == null",
    "request.transactional_id != null", "auth_bytes_decoded.username == alice", "response.api_keys.max_version > 15",
    "request.client_software_name contains java", "protocols.metadata_decoded.topics", "cluster_id",
    "allow_auto_topic_creation == true", "request.topics.partitions.fetch_offset in {0..5}", "topic_id",
    "session_id > 0", "(api == Fetch || topic) && !(latency > 2ms)", "request.acks == 1 || request.acks == -1",
    "error == UNKNOWN_TOPIC_OR_PARTITION", "response.throttle_time_ms > 0",
)  # fmt: skip


def test_every_filter_finds_the_rows_that_it_finds_on_the_captures(ingested: Ingested) -> None:
    from pyspark.sql import functions as f

    from dissector.pipeline.filter_pushdown import push_down

    texts = [*EXACT, *NARROWED]
    tables = tables_of(ingested.spark, ingested.folder)
    rows, _ = tables.exchanges(parse("number > 0 && (finding || !finding)"))
    narrow = [push_down(parse(text), tables.start_ns) for text in texts]
    columns = [f.coalesce(each.column, f.lit(False)).alias(f"fits{at}") for at, each in enumerate(narrow)]
    found = sorted(rows.select("number", *columns).collect())
    assert [each.is_exact for each in narrow] == [text in EXACT for text in texts]
    with Capture(ingested.captures) as capture:
        for step in (capture.read(), capture.examine()):
            for _ in step:
                pass
        assert [row.number for row in found] == list(range(1, len(capture) + 1))
        for at, text in enumerate(texts):
            wanted = {number + 1 for some in capture.select(parse(text)) for number in some.rows.tolist()}
            let_through = {row.number for row in found if row[f"fits{at}"]}
            assert wanted <= let_through, text
            assert wanted == let_through or not narrow[at].is_exact, text


@pytest.mark.parametrize("text", ['topic == "orders"', "error && !(api == Fetch)", "conn == 3 && size > 100"])
def test_rows_that_columns_cannot_decide_are_decoded(ingested: Ingested, text: str) -> None:
    import pyarrow as pa

    tables = tables_of(ingested.spark, ingested.folder)
    schema = pa.schema([("number", pa.int64()), ("conn", pa.int64())])
    made = tables.map_exchanges(
        parse(text), lambda some: ((e.fields.number, e.fields.connection) for e in some), schema
    )
    with Capture(ingested.captures) as capture:
        for step in (capture.read(), capture.examine()):
            for _ in step:
                pass
        wanted = [row for some in capture.select(parse(text)) for row in some.rows.tolist()]
        numbers = [(row + 1, capture.connection_of(row)) for row in wanted]
    assert sorted(map(tuple, made.collect())) == numbers


def test_conditions_are_pushed_down_to_parquet(ingested: Ingested) -> None:
    from dissector.pipeline.filter_pushdown import push_down

    tables = tables_of(ingested.spark, ingested.folder)
    ingested.spark.conf.set("spark.sql.maxMetadataStringLength", "100000")  # else plans leave out most of it
    condition = push_down(parse("api == Fetch && latency > 5ms"), 0).column
    plan = tables.table("exchanges").where(condition)._jdf.queryExecution().executedPlan().toString()
    pushed = re.search(r"PushedFilters: \[(.*?)\], ReadSchema", plan, re.DOTALL)
    assert pushed is not None
    assert "GreaterThanOrEqual(latency_ns,5000001)" in pushed[1]
    assert "EqualTo(api_key,1)" in pushed[1]
    assert re.search(r"PartitionFilters: \[[^\]]*capture#\d+ IN", plan)
