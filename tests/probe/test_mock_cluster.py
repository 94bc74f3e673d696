"""librdkafka's mock cluster, which shares no code with us: it takes every frame that our encoder writes."""

import json
from collections.abc import Iterator

import pytest

from dissector.probe.connection import BrokerConnection, probed_address
from dissector.probe.dialogue import probe_broker
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.writer import write
from dissector.protocol.message import Values
from dissector.protocol.records.batch import Batch, Record, RecordHeader
from dissector.protocol.records.entries import split_entries
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.loader import api
from tests.cli.test_commands import kdissect
from tests.probe.servers import mock_cluster

pytestmark = pytest.mark.slow

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 3, 8, 9
FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 10, 11, 12, 13, 14
RECORDS = [Record(n, 5_000 + n, b"order-%d" % n, b"apples " * n, [RecordHeader("n", bytes([n]))]) for n in range(4)]


WRONG = {PRODUCE: {5}, JOIN_GROUP: {6}, SYNC_GROUP: {4}, LEAVE_GROUP: {3, 4}}
"""What the mock itself gets wrong, and real brokers do not: its answers to Produce v5 and LeaveGroup v3 lack fields,
and flexible arrays of members or protocols are beyond it."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[str]]:
    pytest.importorskip("confluent_kafka", reason="NOT TESTED against librdkafka: confluent-kafka can't be imported")
    with mock_cluster() as addresses:
        yield addresses


@pytest.fixture
def connection(brokers: list[str]) -> Iterator[BrokerConnection]:
    with BrokerConnection(probed_address(brokers[0]), "tests", 15) as found:
        yield found


def ask(connection: BrokerConnection, api_key: int, version: int, **values: object) -> Values:
    """An answer without error; fields that the version lacks are left out."""
    known = api(api_key)
    assert known is not None
    there = {field.name for field in plan(known.request, version).fields}
    response = connection.ask(api_key, version, {name: value for name, value in values.items() if name in there})
    # The mock ends its flexible Metadata with one byte that no field explains.
    assert not response.findings or (api_key == METADATA and [f.code for f in response.findings] == ["trailing-bytes"])
    assert response.body.get("error_code", 0) == 0
    return response.body


def common(connection: BrokerConnection, key: int) -> list[int]:
    """The versions of an API that the mock and the tables have, but for those that the mock gets wrong."""
    known = api(key)
    assert known is not None
    both = known.versions.intersect(probe_broker(connection, topics=False).offer[key])
    return [version for version in both if version not in WRONG.get(key, ())]


def leader(connection: BrokerConnection, topic: str) -> tuple[str, object]:
    """Make a topic by asking for it, as the mock allows; the address of partition 0's leader, and the topic's id."""
    body = ask(connection, METADATA, 12, topics=[{"name": topic}], allow_auto_topic_creation=True)
    [found] = rows(body, "topics")
    partition = next(p for p in rows(found, "partitions") if p["partition_index"] == 0)
    [node] = [b for b in rows(body, "brokers") if b["node_id"] == partition["leader_id"]]
    return f"{node['host']}:{node['port']}", found["topic_id"]


def rows(values: Values, name: str) -> list[Values]:
    found = values[name]
    assert isinstance(found, list)
    return found


def test_the_report_names_the_cluster_and_its_brokers(brokers: list[str]) -> None:
    done = kdissect("probe", brokers[0])
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(address in text for address in brokers)
    assert "mockCluster" in text
    assert "it does not know v5 (error 35) and names none that it knows (KIP-511)" in text
    assert "newer than us: v5 and up" in text  # Heartbeat, which no release of Apache's has in that version


def test_bytes_of_a_probe_are_printed_as_show_prints_exchanges(brokers: list[str]) -> None:
    lines = [json.loads(line) for line in kdissect("probe", brokers[0], "-f", "json").stdout.splitlines()]
    assert [line["api"] for line in lines] == ["ApiVersions", "ApiVersions", "Metadata"]
    assert lines[0]["response"]["body"]["error_code"] == 35
    assert lines[2]["server"] == brokers[0]
    assert len(lines[2]["response"]["body"]["brokers"]) == 3
    tree = kdissect("probe", brokers[0], "-f", "tree").stdout.decode()
    assert 'client_software_name: "kdissect"  [23+9 COMPACT_STRING]' in tree


def test_topics_are_listed_on_request(brokers: list[str], connection: BrokerConnection) -> None:
    leader(connection, "listed")
    assert "listed" in kdissect("probe", brokers[0], "--topics").stdout.decode()
    assert "listed" not in kdissect("probe", brokers[0]).stdout.decode()


def test_metadata_gets_a_response_in_every_version(connection: BrokerConnection) -> None:
    leader(connection, "meta")
    for version in common(connection, METADATA):
        body = ask(connection, METADATA, version, topics=[{"name": "meta"}], allow_auto_topic_creation=False)
        assert [topic["name"] for topic in rows(body, "topics")] == ["meta"]
        assert len(rows(body, "brokers")) == 3


@pytest.mark.parametrize("codec", range(5))
def test_what_is_produced_is_fetched_again_in_every_version(connection: BrokerConnection, codec: int) -> None:
    objects = [record._asdict() | {"headers": [header._asdict() for header in record.headers]} for record in RECORDS]
    topic, sent = f"codec-{codec}", batch_bytes({"attributes": codec, "records": objects})
    address, topic_id = leader(connection, topic)
    with BrokerConnection(probed_address(address), "tests", 15) as broker:
        # Batches of magic 2 came with Produce v3 and Fetch v4; from v13 on a Fetch knows topics by their ids alone.
        versions = [v for v in common(broker, PRODUCE) if v >= 3]
        assert len(versions) > 5
        for count, version in enumerate(versions):
            partition = {"index": 0, "records": sent}
            data = [{"name": topic, "partition_data": [partition]}]
            body = ask(broker, PRODUCE, version, acks=-1, timeout_ms=1_000, topic_data=data)
            [answer] = rows(rows(body, "responses")[0], "partition_responses")
            assert (answer["error_code"], answer["base_offset"]) == (0, count * len(RECORDS))
        for version in [v for v in common(broker, FETCH) if v >= 4]:
            named: Values = {"topic": topic} if version < 13 else {"topic_id": topic_id}
            assert fetched(broker, named, version) == RECORDS


def fetched(broker: BrokerConnection, topic: Values, version: int) -> list[Record]:
    """The records of the first batch of partition 0, their offsets counted from its own."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    body = ask(broker, FETCH, version, max_wait_ms=500, min_bytes=1, topics=[{**topic, "partitions": [partition]}])
    [answer] = rows(rows(body, "responses")[0], "partitions")
    assert answer["error_code"] == 0
    data = answer["records"]
    assert isinstance(data, bytes)
    first = next(split_entries(data))
    found = Batch.read(data[first.start : first.end])
    return [record._replace(offset=record.offset - found.base_offset) for record in found.records(frame_budget())]


def coordinator(connection: BrokerConnection, group: str) -> str:
    """The address of a group's coordinator, the same in every version."""
    found = set()
    for version in common(connection, FIND_COORDINATOR):
        body = ask(connection, FIND_COORDINATOR, version, key=group, key_type=0, coordinator_keys=[group])
        [place] = rows(body, "coordinators") if version >= 4 else [body]
        found.add(f"{place['host']}:{place['port']}")
    [address] = found
    return address


@pytest.mark.parametrize("newest", [True, False])
def test_a_member_joins_commits_and_leaves(connection: BrokerConnection, newest: bool) -> None:
    group, topic = f"group-{newest}", f"grouped-{newest}"
    leader(connection, topic)
    with BrokerConnection(probed_address(coordinator(connection, group)), "tests", 15) as broker:
        # OffsetCommit v0 has no generation and names no member.
        version = {key: [v for v in common(broker, key) if v or key != OFFSET_COMMIT][-1 if newest else 0] for key in (
            JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH, LEAVE_GROUP)}  # fmt: skip
        subscription = b"\x00\x03" + write("ConsumerProtocolSubscription", 3, {"topics": [topic]})
        wanted: dict[str, object] = {
            "group_id": group, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "member_id": "",
            "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": subscription}],
        }  # fmt: skip
        joined = ask(broker, JOIN_GROUP, version[JOIN_GROUP], **wanted)
        assert (joined["error_code"], joined["leader"], joined["protocol_name"]) == (0, joined["member_id"], "range")
        [member] = rows(joined, "members")
        assert member["metadata"] == subscription
        me = {"group_id": group, "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
        assignment = b"\x00\x03" + write(
            "ConsumerProtocolAssignment", 3, {"assigned_partitions": [{"topic": topic, "partitions": [0]}]}
        )
        mine = [{"member_id": joined["member_id"], "assignment": assignment}]
        assert ask(broker, SYNC_GROUP, version[SYNC_GROUP], **me, assignments=mine)["assignment"] == assignment
        ask(broker, HEARTBEAT, version[HEARTBEAT], **me)
        _commit(broker, version, me, topic)
        leaving = {"member_id": joined["member_id"]}
        ask(broker, LEAVE_GROUP, version[LEAVE_GROUP], group_id=group, **leaving, members=[leaving])


def _commit(broker: BrokerConnection, version: dict[int, int], me: Values, topic: str) -> None:
    """Commit an offset, and fetch it again."""
    partition = {"partition_index": 0, "committed_offset": 42, "committed_metadata": "here"}
    commit = {**me, "generation_id_or_member_epoch": me["generation_id"]}
    body = ask(
        broker, OFFSET_COMMIT, version[OFFSET_COMMIT], **commit, topics=[{"name": topic, "partitions": [partition]}]
    )
    assert rows(rows(body, "topics")[0], "partitions")[0]["error_code"] == 0
    wanted = [{"name": topic, "partition_indexes": [0]}]
    body = ask(broker, OFFSET_FETCH, version[OFFSET_FETCH], group_id=me["group_id"], topics=wanted)
    [found] = rows(rows(body, "topics")[0], "partitions")
    assert (found["committed_offset"], found["error_code"]) == (42, 0)
