"""A filter in SQL answers as it does on the captures."""

from typing import TYPE_CHECKING

import pytest

from dissector.capture_session import Capture
from dissector.filter import parse
from tests.conftest import some_of
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from dissector.tables.reader import Tables

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
    "number > 5 && finding", "request.max_wait_ms > 100ms", "max_wait_ms == 500", "!(max_wait_ms == 500)",
    "request.acks == -1", "request.acks == 1 || request.acks == -1", "request.session_epoch in {-1, 1..5}",
    "request.timeout_ms > 1s && api == Produce", "response.throttle_time_ms > 0",
)  # fmt: skip
NARROWED = (
    "info contains rec",
    "api contains etc", "api matches '^f.*h$'", "client_id matches 'a.*o'", "error", "error == NONE", "!error",
    "error != 0 && api == Fetch", "topic", 'topic == "orders"', "topic contains o", '!(topic == "orders")',
    "partition == 0",
    "partition > 1", "group", "group matches .", "group != x", "error_code != 0", "exists request.topics.name",
    "request.body.topics.partitions.partition == 0", "response.body.responses.partitions.error_code == 0",
    "response.responses.partitions.high_watermark > 2", 'request.header.client_id != ""',
    "exists request.acks", "request.isolation_level == 1",
    "request.group_id contains o", "response.brokers.port == 9092", "response.brokers.host == 127.0.0.1",
    "response.topics.name != x", "request.topic_data.partition_data.records.batches.records.value contains a",
    "records.batches.compression == none", "records.batches.records_count > 1", "request.transactional_id == null",
    "request.transactional_id != null", "auth_bytes_decoded.username == alice", "response.api_keys.max_version > 15",
    "request.client_software_name contains java", "protocols.metadata_decoded.topics", "cluster_id",
    "allow_auto_topic_creation == true", "request.topics.partitions.fetch_offset in {0..5}", "topic_id",
    "session_id > 0", "(api == Fetch || topic) && !(latency > 2ms)",
    "error == UNKNOWN_TOPIC_OR_PARTITION",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_every_filter_finds_the_rows_that_it_finds_on_the_captures(tables: "Tables") -> None:
    from dissector.tables.reader import BODIES

    texts = [*EXACT, *NARROWED]
    narrow = [tables.select(parse(text))[1] for text in texts]
    columns = ", ".join(f"coalesce({each.sql}, FALSE) AS fits{at}" for at, each in enumerate(narrow))
    with_bodies = f"e.*, {', '.join(f'b.{name}' for name in BODIES)}"
    found = [
        row
        for part in tables.parts()
        for batch in tables.with_bodies(part, with_bodies, f"SELECT number, {columns} FROM ({{}})")
        for row in batch.to_pylist()
    ]
    assert [each.is_exact for each in narrow] == [text in EXACT for text in texts]
    with Capture(CAPTURES) as capture:
        for step in (capture.read(), capture.findings.examine()):
            for _ in step:
                pass
        assert [row["number"] for row in found] == list(range(1, len(capture) + 1))
        for at, text in enumerate(texts):
            wanted = {number + 1 for some in capture.select(parse(text)) for number in some.rows.tolist()}
            let_through = {row["number"] for row in found if row[f"fits{at}"]}
            assert wanted <= let_through, text
            assert wanted == let_through or not narrow[at].is_exact, text


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    some_of(['topic == "orders"', "error && !(api == Fetch)", "conn == 3 && size > 100"], "error && !(api == Fetch)"),
)
def test_rows_that_columns_cannot_decide_are_decoded(tables: "Tables", text: str) -> None:
    made = [(each.fields.number, each.fields.connection) for each in tables.exchanges(parse(text))]
    with Capture(CAPTURES) as capture:
        for step in (capture.read(), capture.findings.examine()):
            for _ in step:
                pass
        wanted = [row for some in capture.select(parse(text)) for row in some.rows.tolist()]
        numbers = [(row + 1, capture.rows.connection_of(row)) for row in wanted]
    assert made == numbers
    assert [each.fields.number for each in tables.exchanges(parse(text), 2)] == [number for number, _ in numbers[:2]]
    assert tables.counted(parse(text)) == len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["it's", "a\\b", 'say "so"', "\u202e", "100%", ""])
def test_texts_are_compared_as_they_are(tables: "Tables", word: str) -> None:
    from dissector.tables.sql import text

    [row] = tables.database.rows(f"SELECT {text(word)} AS word, contains({text('x' + word)}, 'x') AS has_it")
    assert row == {"word": word, "has_it": True}


@pytest.mark.long
@pytest.mark.slow
def test_conditions_are_pushed_down_to_parquet(tables: "Tables") -> None:
    """So that parts of files that have no such rows are not read."""
    for text, condition in (("latency > 5ms", "latency_ns >= 5000001"), ("api_version == 4", "api_version = 4")):
        sql, _ = tables.select(parse(text))
        plan = "".join(row["explain_value"] for row in tables.database.rows(f"EXPLAIN {sql}"))
        assert f"Filters: {condition} " in plan
