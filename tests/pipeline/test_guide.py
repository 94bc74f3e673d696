"""Every query of the guide, as it stands there, answers what the captures say."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dissector
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.schema.loader import apis
from dissector.tables.schemas import TABLES
from tests.pipeline.ingested import Ingested

if TYPE_CHECKING:
    from pyspark.sql import Row

GUIDE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
QUERIES = dict(re.findall(r"^### (.+?)\n(?:(?!^###).)*?```sql\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def exchanges() -> list[Exchange]:
    """Those of the captures."""
    from tests.pipeline.ingested import CAPTURES

    with Capture(CAPTURES) as capture:
        for step in (capture.read(), capture.findings.examine()):
            for _ in step:
                pass
        found = list(capture.exchanges())
        for each in found:
            _ = (each.request and each.request.decoded_body), (each.response and each.response.decoded_body), each.row
        return found


def rows_of_query(ingested: Ingested, title: str) -> "list[Row]":
    for statement in dissector.table_views(ingested.folder, "spark"):
        ingested.spark.sql(statement)
    return ingested.spark.sql(QUERIES[title]).collect()


def body(exchange: Exchange, side: str) -> dict[str, Any]:
    message = getattr(exchange, side)
    return dict(message.body) if message is not None else {}


def test_the_guide_names_every_table() -> None:
    named = re.findall(r"^\| `(\w+)` \| a ", GUIDE, re.MULTILINE)
    assert named == [table.name for table in TABLES]
    assert len(QUERIES) == 6


@pytest.mark.long
def test_the_versions_that_kafka_4_removed_are_those_of_its_schemas() -> None:
    output = subprocess.run(
        [sys.executable, "-m", "dissector.cli.main", "schema", "diff", "3.9.2", "4.4.0"], capture_output=True, text=True
    ).stdout
    changed = re.findall(r"^  changed  (\w+)Request  v(\d+)\S* became v(\d+)", output, re.MULTILINE)
    raised = {name: int(now) for name, was, now in changed if int(now) > int(was)}
    keys = {each.name: each.key for each in apis()}
    # Of previews nobody had a release, and brokers speak to each other in versions of their own.
    others = {"ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat", "ShareGroupDescribe", "AlterPartition"}
    wanted = {(keys[name], low) for name, low in raised.items() if name not in others | {"WriteTxnMarkers"}}
    query = QUERIES["Which clients still use versions that Kafka 4 removed"]
    assert {(int(key), int(low)) for key, low in re.findall(r"\((\d+), (\d+)\)", query)} == wanted


@pytest.mark.slow
@pytest.mark.spark
def test_who_produces_to_a_topic(ingested: Ingested, exchanges: list[Exchange]) -> None:
    rows = rows_of_query(ingested, "Which clients, in which versions, produce to a topic")
    records: Counter[str | None] = Counter()
    for each in exchanges:
        if each.fields.api == "Produce" and each.request is not None:
            topics: Any = each.request.decoded_body["topic_data"]
            for topic in topics:
                if "java-orders" in (topic.get("name"), topic.get("topic_id_decoded")):
                    batches = [batch for part in topic["partition_data"] for batch in part["records"]["batches"]]
                    records[each.fields.client_id] += sum(len(batch["records"]) for batch in batches)
    assert records
    assert {row.client_id: row.records for row in rows} == dict(records)
    assert {row.software_name for row in rows} == {"apache-kafka-java"}


@pytest.mark.slow
@pytest.mark.spark
def test_clients_that_use_removed_versions(ingested: Ingested, exchanges: list[Exchange]) -> None:
    rows = rows_of_query(ingested, "Which clients still use versions that Kafka 4 removed")
    found = {(row.client_id, row.api, row.api_version): row.requests for row in rows}
    low = {"Fetch": 4, "Produce": 3, "ListOffsets": 1, "OffsetCommit": 2, "OffsetFetch": 1}
    wanted = Counter(
        (each.fields.client_id, each.fields.api, each.fields.version) for each in exchanges
        if each.fields.version is not None and each.fields.version < low.get(each.fields.api, 0)
    )  # fmt: skip
    assert {(api, version) for _, api, version in found} == {("Fetch", 3), ("Produce", 2)}
    assert found == dict(wanted)


@pytest.mark.slow
@pytest.mark.spark
def test_the_slowest_fetches(ingested: Ingested, exchanges: list[Exchange]) -> None:
    rows = rows_of_query(ingested, "The slowest fetches")
    beyond = [
        each.fields.latency_ns / 1e6 - body(each, "request")["max_wait_ms"] for each in exchanges
        if each.fields.api == "Fetch" and each.fields.latency_ns is not None
    ]  # fmt: skip
    assert [row.beyond_ms for row in rows] == pytest.approx(sorted(beyond, reverse=True)[:20])


@pytest.mark.slow
@pytest.mark.spark
def test_how_restless_groups_are(ingested: Ingested, exchanges: list[Exchange]) -> None:
    rows = rows_of_query(ingested, "How often consumer groups rebalance")
    joins: Counter[str] = Counter()
    generations: dict[str, set[int]] = {}
    for each in exchanges:
        if each.fields.api in ("JoinGroup", "LeaveGroup") or each.fields.api.endswith("GroupHeartbeat"):
            request = body(each, "request")
            group = request["group_id"]
            joins[group] += each.fields.api == "JoinGroup" or request.get("member_epoch") == 0
            answer = body(each, "response")
            number = answer.get("generation_id", answer.get("member_epoch", -1))
            generations.setdefault(group, set()).update({number} - {-1, None})
    assert {row.group_id: row.joins for row in rows} == dict(joins)
    assert {row.group_id: row.generations for row in rows} == {name: len(some) for name, some in generations.items()}
    assert max(row.generations for row in rows) > 1


@pytest.mark.slow
@pytest.mark.spark
def test_which_errors_whom(ingested: Ingested, exchanges: list[Exchange]) -> None:
    from dissector.exchange.message_subjects import ERROR
    from dissector.protocol.schema.errors import error_name

    rows = rows_of_query(ingested, "Who gets which errors")
    wanted = Counter(
        (error_name(code), each.fields.api, each.fields.client_id)
        for each in exchanges for code in {code for code in ERROR.of(each) if isinstance(code, int) and code}
    )  # fmt: skip
    assert {(row.error, row.api, row.client_id): row.times for row in rows} == dict(wanted)
    assert rows


@pytest.mark.slow
@pytest.mark.spark
def test_bytes_by_topic_and_minute(ingested: Ingested) -> None:
    rows = rows_of_query(ingested, "Bytes by topic and minute")
    assert sum(row.records for row in rows) == ingested.spark.sql("SELECT * FROM records WHERE NOT control").count()
    assert {row.minute.second for row in rows} == {0}
    assert sum(row.bytes for row in rows) > 1000
