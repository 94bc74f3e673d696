"""Statistics of the bundled captures, compared with a naive count over the output of `show --format json`."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from dissector.analysis.stats import counts, field_bytes
from dissector.analysis.stats.breakdowns import BREAKDOWNS, api_name
from dissector.analysis.stats.counts import ClientSoftware, ExchangeCounts, Statistics
from dissector.analysis.stats.field_bytes import MessageKind
from dissector.analysis.stats.negotiated_versions import negotiated_versions
from dissector.analysis.stats.row_field_counts import RowFieldPass
from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.to_json import json_line
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.loader import apis
from tests.analysis.stats.counting import count
from tests.conftest import PCAPS
from tests.findings.conversations import MS, Talk, heartbeat, written
from tests.storage.test_files import LEDGER
from tui.overview_model import overview_snapshot

SOME = ["java", "java-transactions", "librdkafka-acks0", "kafka-python-as-0.9", "plain-socket-sasl-v0", "two-brokers"]
KEYS = {api.name: api.key for api in apis()}


def opened(name: str) -> Capture:
    capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in capture.read():
        pass
    return capture


def counted(capture: Capture, rows: Any = None) -> Statistics:
    counting = StatisticsPass(capture, rows)
    for _ in counting.steps():
        pass
    return counting.statistics


def shown(capture: Capture) -> list[dict[str, Any]]:
    return [json.loads(json_line(exchange)) for exchange in capture.exchanges()]


def error_codes(value: Any) -> set[int]:
    """All error codes anywhere in a body."""
    if isinstance(value, list):
        return set().union(*map(error_codes, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    own = {inner for name, inner in value.items() if name.endswith("error_code") and inner}
    return own.union(*(error_codes(inner) for name, inner in value.items() if not name.endswith("_decoded")))


def naive(lines: list[dict[str, Any]]) -> dict[Any, ExchangeCounts]:
    """Counts for the total, each API version, each connection."""
    tallies: defaultdict[Any, ExchangeCounts] = defaultdict(ExchangeCounts)
    for line in lines:
        if line["kind"] != "exchange":
            continue
        request_value, response_value = line["request"], line["response"]
        codes = error_codes(response_value["body"]) if response_value else set()
        silent = any(finding["code"] == "no-response-expected" for finding in line["findings"])
        for key in ("all", (line["api_key"], line["api_version"]), line["connection"]):
            tally = tallies[key]
            count(
                tally,
                request_value["size"] if request_value else 0,
                response_value["size"] if response_value else 0,
                bool(codes),
                line["latency_ns"],
                waits=line["api_key"] in WAITING,
            )
            tally.unanswered += response_value is None and not silent
    return tallies


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_counts_equal_a_naive_count(name: str) -> None:
    with opened(name) as capture:
        lines, statistics = shown(capture), counted(capture)
    expected = naive(lines)
    assert statistics.total == expected.pop("all")
    found = {(api.api_key, api.version): tally for api, tally in statistics.apis.counts.items()}
    found |= {connection.number: tally for connection, tally in statistics.connections.counts.items()}
    assert found == expected
    assert statistics.kinds == Counter(line["kind"] for line in lines)


@pytest.mark.slow
def test_counts_of_every_bundled_capture_equal_a_naive_count(bundled: Path) -> None:
    test_counts_equal_a_naive_count(bundled.stem)


def test_clients_are_identified_by_client_id_and_software() -> None:
    with opened("java") as capture:
        lines, statistics = shown(capture), counted(capture)
    ids = Counter(line["client_id"] for line in lines)
    assert {client.client_id: tally.exchanges for client, tally in statistics.clients.counts.items()} == ids
    assert ClientSoftware("producer-1", "apache-kafka-java", "4.3.1") in statistics.clients.counts


def test_bytes_of_a_topic_are_those_of_its_records() -> None:
    with opened("java") as capture:
        lines, statistics = shown(capture), counted(capture)
    out = sum(
        partition["records"]["size"]
        for line in lines if line["api"] == "Produce"
        for topic in line["request"]["body"]["topic_data"]
        for partition in topic["partition_data"]
    )  # fmt: skip
    back = sum(
        partition["records"]["size"]
        for line in lines if line["api"] == "Fetch"
        for topic in line["response"]["body"]["responses"]
        for partition in topic["partitions"] if partition["records"]
    )  # fmt: skip
    topic = statistics.topics.counts["java-orders"]
    assert (topic.bytes_out, topic.bytes_in) == (out, back)
    parts = [tally for of, tally in statistics.partitions.counts.items() if of.topic == "java-orders"]
    assert (sum(tally.bytes_out for tally in parts), sum(tally.bytes_in for tally in parts)) == (out, back)


def test_errors_are_counted_by_name_and_api() -> None:
    with opened("java-transactions") as capture:
        statistics = counted(capture)
    found = {line.label: line.counts.exchanges for line in BREAKDOWNS["error"](statistics)}
    assert found == {
        "MEMBER_ID_REQUIRED in JoinGroup": 2,
        "CONCURRENT_TRANSACTIONS in TxnOffsetCommit": 1,
        "CONCURRENT_TRANSACTIONS in AddPartitionsToTxn": 1,
    }


@pytest.mark.long
def test_used_versions_are_listed_with_advertised_ones() -> None:
    with opened("kafka-python-as-2.1") as capture:
        lines, statistics = shown(capture), counted(capture)
    [answer] = [line["response"]["body"] for line in lines if line["api"] == "ApiVersions"][:1]
    offered = {each["api_key"]: (each["min_version"], each["max_version"]) for each in answer["api_keys"]}
    used = defaultdict(set)
    for line in lines:
        used[line["client_id"], line["server"], line["api_key"]].add(line["api_version"])
    found = negotiated_versions(statistics)
    assert {
        (each.client_api.client.client_id, each.client_api.server, each.client_api.api_key) for each in found
    } == used.keys()
    for each in found:
        versions = used[each.client_api.client.client_id, each.client_api.server, each.client_api.api_key]
        assert (each.used.low, each.used.high) == (min(versions), max(versions))
        assert each.advertised is not None
        assert (each.advertised.low, each.advertised.high) == offered[each.client_api.api_key]
        assert each.newest_offered is not None
    assert any(not each.is_newest for each in found), "an old client uses old versions"


@pytest.mark.parametrize("name", SOME)
def test_bytes_of_fields_add_up_to_the_frames(name: str) -> None:
    with opened(name) as capture:
        statistics = counted(capture)
    assert statistics.fields.is_complete
    total = sum(count for sample in statistics.fields.kinds.values() for _, count in sample.estimated())
    assert total == statistics.total.bytes_out + statistics.total.bytes_in
    assert not [path for sample in statistics.fields.kinds.values() for path in sample.paths if "(" in path]


def test_a_field_has_the_bytes_of_its_nodes_in_the_tree() -> None:
    with opened("java") as capture:
        statistics = counted(capture)
        nodes = [
            node
            for exchange in capture.exchanges() if exchange.fields.api == "Produce" and exchange.request is not None
            for node in exchange.request.tree.walk() if node.path.endswith(".records") and node.source == 0
        ]  # fmt: skip
    sample = statistics.fields.kinds[MessageKind(KEYS["Produce"], 13, "request")]
    records = [node for node in nodes if node.path.count("[") == 2]
    assert sample.paths["body.topic_data.partition_data.records"] == sum(node.size for node in records)


def test_filters_of_groups_are_valid() -> None:
    with opened("java") as capture:
        statistics = counted(capture)
    filters = {line.filter for section in BREAKDOWNS.values() for line in section(statistics)}
    assert {
        "api == Fetch && version == 18", 'client_id == "producer-1"', "conn == 1", 'topic == "java-orders"',
        "error == MEMBER_ID_REQUIRED && api == JoinGroup", 'topic == "java-orders" && partition == 0',
    } <= filters  # fmt: skip
    assert api_name(-1) == "(no request)"


def test_a_full_group_still_counts_every_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MAX_KEYS", 3)
    with opened("java-transactions") as capture:
        statistics = counted(capture)
    for group in (statistics.apis, statistics.clients, statistics.connections):
        assert len(group.counts) == 3
        assert group.others.exchanges > 0
        assert sum(tally.exchanges for tally in group.counts.values()) + group.others.exchanges == 64


def test_a_sample_is_marked_as_such_and_estimates_all_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_bytes, "SAMPLE_SIZE", 2)
    with opened("java-transactions") as capture:
        statistics = counted(capture)
    assert not statistics.fields.is_complete
    kind = MessageKind(KEYS["ApiVersions"], 4, "response")
    sample = statistics.fields.kinds[kind]
    assert (sample.messages, sample.traced) == (12, 2)
    total = statistics.total.bytes_out + statistics.total.bytes_in
    estimated = sum(count for each in statistics.fields.kinds.values() for _, count in each.estimated())
    paths = sum(len(each.paths) for each in statistics.fields.kinds.values())
    assert total - paths <= estimated <= total, "each field is rounded down to a byte"


def test_entries_of_kafka_files_are_counted_as_entries() -> None:
    with Capture([LEDGER, str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        statistics = counted(capture)
        assert statistics.kinds == {"entry": len(capture) - 60, "exchange": 60}
        assert {connection.number for connection in statistics.connections.counts} == {
            capture.rows.connection_of(number) for number in range(len(capture) - 60, len(capture))
        }


def test_long_polls_are_in_no_percentile_but_their_own(tmp_path: Path) -> None:
    """In `stats`, in the overview, by row field: a consumer that waits for records is not slow."""
    talk = Talk()
    for at in range(0, 20_000, 1000):
        heartbeat(talk, at, took=2)
        talk.ask(at + 10, "Fetch", 4, {"max_wait_ms": 500}, {}, took=500)
    with Capture([written(tmp_path, talk)]) as capture:
        for _ in capture.read():
            pass
        statistics = counted(capture)
        by_field = RowFieldPass(capture, ROW_FIELDS["server"])
        for _ in by_field.steps():
            pass
    mixed = [
        *statistics.clients.counts.values(),
        *statistics.connections.counts.values(),
        *by_field.counts.counts.values(),
    ]
    assert [each.usual_latency.most for each in (statistics.total, *mixed)] == [2 * MS] * 4
    polls = {api_name(key.api_key): each.usual_latency.least for key, each in statistics.apis.counts.items()}
    assert polls == {"Heartbeat": 2 * MS, "Fetch": 500 * MS}
    assert [entry.p99 for entry in overview_snapshot(statistics).groups["client"][0]] == [2 * MS]
