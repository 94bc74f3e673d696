"""Tables and columns that are made of bodies say what the bodies of the same exchanges say, as `show` has them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.exchange.to_json import exchange_object
from dissector.pipeline.body_rows import TABLES
from dissector.pipeline.cluster_cells import topic_cells
from dissector.pipeline.partition_cells import ISOLATION
from dissector.tables.file_systems import normal_uri
from dissector.tables.schemas import BY_NAME, OF_REQUEST, OF_RESPONSE
from tests.pipeline.contents import rows_that_count
from tests.pipeline.ingested import CAPTURES

Object = dict[str, Any]
NAMES = {"Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "TxnOffsetCommit", "OffsetFetch"}


@pytest.fixture(scope="module")
def exchanges() -> list[Object]:
    found = []
    for path in CAPTURES:
        with Capture([path]) as capture:
            for _ in capture.read():
                pass
            found += [exchange_object(each) for each in capture.exchanges()]
    return [each for each in found if each["kind"] == "exchange"]


@pytest.fixture(scope="module")
def tables(folder: str) -> dict[str, list[Object]]:
    assert normal_uri(folder).startswith("file://")
    return rows_that_count(folder)


def below(value: Any, name: str) -> Iterator[Any]:
    """All values of a field, wherever it is."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == name:
                yield each
            else:
                yield from below(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from below(each, name)


def bodies(exchanges: list[Object], api: str, side: str) -> Iterator[Object]:
    return (each[side]["body"] for each in exchanges if each["api"] == api and each[side] and each[side]["body"])


@pytest.mark.long
@pytest.mark.slow
def test_every_partition_of_a_request_has_a_row(exchanges: list[Object], tables: dict[str, list[Object]]) -> None:
    """Both sides name the same partitions of a Produce or ListOffsets; a fetch session may leave out either."""
    rows = Counter(row["api"] for row in tables["partitions"])
    assert rows.keys() <= NAMES
    for api, name in (("Produce", "index"), ("ListOffsets", "partition_index"), ("OffsetCommit", "partition_index")):
        assert rows[api] == sum(len(list(below(body, name))) for body in bodies(exchanges, api, "request"))
    answered = sum(
        len(list(below(body["responses"], "partition_index"))) for body in bodies(exchanges, "Fetch", "response")
    )
    assert 0 < answered <= rows["Fetch"]
    assert rows["Metadata"] == sum(
        len(list(below(body, "partition_index"))) for body in bodies(exchanges, "Metadata", "response")
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("api", "side", "field", "column"),
    [
        ("Produce", "response", "base_offset", "offset"),
        ("Fetch", "response", "high_watermark", "high_watermark"),
        ("Fetch", "response", "last_stable_offset", "last_stable_offset"),
        ("Fetch", "request", "fetch_offset", "offset"),
        ("OffsetCommit", "request", "committed_offset", "offset"),
        ("OffsetFetch", "response", "committed_offset", "offset"),
        ("ListOffsets", "response", "offset", "offset"),
        ("Metadata", "response", "leader_id", "leader"),
        ("Metadata", "response", "leader_epoch", "leader_epoch"),
    ],
)
def test_columns_have_the_values_of_the_fields(
    exchanges: list[Object], tables: dict[str, list[Object]], api: str, side: str, field: str, column: str
) -> None:
    values = Counter(value for body in bodies(exchanges, api, side) for value in below(body, field))
    found = Counter(row[column] for row in tables["partitions"] if row["api"] == api)
    del found[None]
    if (api, field) == ("ListOffsets", "offset"):
        values = Counter({value: count for value, count in values.items() if value is not None})
    assert values
    assert found == values


def test_bytes_of_records_add_up(exchanges: list[Object], tables: dict[str, list[Object]]) -> None:
    for api, side in (("Produce", "request"), ("Fetch", "response")):
        sizes = (each["size"] for body in bodies(exchanges, api, side) for each in below(body, "records") if each)
        assert sum(row["records_size"] or 0 for row in tables["partitions"] if row["api"] == api) == sum(sizes) > 0


def test_generations_of_groups_are_those_of_the_bodies(
    exchanges: list[Object], tables: dict[str, list[Object]]
) -> None:
    expected = {
        (each["request"]["body"]["group_id"], each["response"]["body"]["generation_id"])
        for each in exchanges
        if each["api"] == "JoinGroup" and each["response"] and not each["response"]["body"]["error_code"]
    }
    joined = [row for row in tables["groups"] if row["event"] in ("join", "rejoin") and row["api"] == "JoinGroup"]
    assert {(row["group_id"], row["generation"]) for row in joined if row["error"] is None} == expected != set()
    assert len(joined) == sum(each["api"] == "JoinGroup" for each in exchanges)
    leaders = {row["leader"] for row in joined if row["leader"]}
    assert leaders
    assert leaders <= {row["member_id"] for row in tables["groups"]}


def test_topics_are_called_by_their_names(tables: dict[str, list[Object]]) -> None:
    topics = {row["topic"] for row in tables["partitions"]}
    assert "java-orders" in topics
    assert {row["topic"] for row in tables["records"]} - {None} <= topics


def test_topics_are_those_that_metadata_lists(exchanges: list[Object], tables: dict[str, list[Object]]) -> None:
    expected = Counter(
        (topic["name"], topic.get("topic_id"), topic.get("is_internal"), len(topic["partitions"]))
        for body in bodies(exchanges, "Metadata", "response")
        for topic in body["topics"]
        if topic["partitions"]
    )
    rows = [row for row in tables["topics"] if row["api"] == "Metadata" and row["partition_count"]]
    columns = ("topic", "topic_id", "internal", "partition_count")
    assert Counter(tuple(row[name] for name in columns) for row in rows) == expected != {}
    assert {row["replication_factor"] for row in rows} == {1}


def test_topics_that_are_created_have_what_was_asked_for_and_given() -> None:
    request = {"topics": [{"name": "orders", "num_partitions": 6, "replication_factor": -1}]}
    given = {"name": "orders", "topic_id": "x" * 22, "error_code": 0, "num_partitions": 6, "replication_factor": 3}
    assert topic_cells(19, request, {"topics": [given]}) == [("orders", "x" * 22, None, 6, 3, None)]
    refused = {"topics": [{"name": "orders", "error_code": 36, "num_partitions": -1}]}
    [cells] = topic_cells(19, request, refused)
    assert cells == ("orders", None, None, 6, None, "TOPIC_ALREADY_EXISTS")
    assert [row[0] for row in topic_cells(20, {"topic_names": ["a", "b"]}, None)] == ["a", "b"]


def test_brokers_are_those_that_metadata_lists(exchanges: list[Object], tables: dict[str, list[Object]]) -> None:
    expected = Counter(
        (each["node_id"], each["host"], each["port"], each.get("rack"), body.get("cluster_id"))
        for body in bodies(exchanges, "Metadata", "response")
        for each in body["brokers"]
    )
    rows = [row for row in tables["brokers"] if row["api"] == "Metadata"]
    columns = ("broker", "host", "port", "rack", "cluster_id")
    assert Counter(tuple(row[name] for name in columns) for row in rows) == expected != {}
    assert any(row["controller"] for row in rows)


@pytest.mark.parametrize("name", [*OF_REQUEST, *OF_RESPONSE])
def test_numbers_of_bodies_are_columns(exchanges: list[Object], tables: dict[str, list[Object]], name: str) -> None:
    side = "response" if name in OF_RESPONSE else "request"
    sides = [each[side] for each in exchanges if each[side] and each[side]["body"]]
    expected = Counter(each["body"][name] for each in sides if each["body"].get(name) is not None)
    found = Counter(row[name] for row in tables["exchanges"])
    del found[None]
    if name == "isolation_level":
        expected = Counter({ISOLATION[level]: count for level, count in expected.items()})
    assert found == expected != {}


NUMBER = st.none() | st.integers(-3, 1 << 62)
TEXT = st.none() | st.text(max_size=3)
LISTS = (
    "topics",
    "topic_data",
    "responses",
    "partitions",
    "partition_data",
    "partition_responses",
    "groups",
    "members",
    "brokers",
    "results",
)
BODY: st.SearchStrategy[Object] = st.deferred(
    lambda: st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("group_id", "member_id", "name", "reason", "topic_id"), TEXT),
            **dict.fromkeys(("partition_index", "index", "error_code", "member_epoch", "offset", "acks"), NUMBER),
            **dict.fromkeys(LISTS, st.none() | st.lists(BODY, max_size=2)),
            "topic_names": st.none() | st.lists(st.text(max_size=3), max_size=2),
            "replica_nodes": st.none() | st.lists(st.integers(), max_size=2),
            "partition_indexes": st.none() | st.lists(st.integers(), max_size=2),
            "records": st.none() | st.fixed_dictionaries({}, optional={"size": NUMBER}),
        },
    )
)
"""A body of which damage may have cut anything."""


APIS = sorted({key for table in TABLES for key in table.apis})


@pytest.mark.long
@given(st.sampled_from(APIS), st.none() | BODY, st.none() | BODY)
def test_bodies_that_damage_has_cut_are_survived(api_key: int, request: Object | None, response: Object | None) -> None:
    for table in TABLES:
        if api_key in table.apis:
            assert all(len(row) == len(table.columns) for row in table.cells(api_key, request, response))


def test_the_columns_are_those_of_the_tables() -> None:
    for table in TABLES:
        assert [each.name for each in BY_NAME[table.name].columns][-len(table.columns) :] == list(table.columns)
