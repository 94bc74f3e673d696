"""Metadata that no client can use, and metadata that only looks odd."""

from pathlib import Path
from typing import Any

from tests.cases import cases
from tests.findings.wire import Wire, pcap_of
from tests.test_mistakes import findings


def said(folder: Path, host: str = "kafka-1", port: int = 9092, leaders: tuple[int, ...] = (1,), error: int = 0) -> Any:
    wire = Wire()
    partitions = [{"partition_index": n, "error_code": error, "leader_id": leader} for n, leader in enumerate(leaders)]
    answer = {
        "brokers": [{"node_id": 1, "host": "10.0.0.9", "port": 9092}, {"node_id": 2, "host": host, "port": port}],
        "topics": [{"name": "t", "partitions": partitions}],
    }
    wire.exchange(1, "Metadata", 5, {"topics": [{"name": "t"}]}, answer)
    return [
        (each.path, each.message) for each in findings(Path(pcap_of(folder, wire))) if each.code == "unusable-metadata"
    ]


@cases("host", ["http://kafka", "kafka:9092", "kafka-1,kafka-2", "", "SASL_SSL://b-1", "kafka 1", "user@kafka"])
def test_an_address_that_is_none(tmp_path: Path, host: str) -> None:
    [(path, message)] = said(tmp_path, host)
    assert path == "response.body.brokers[1].host"
    assert message.startswith(f"a broker is advertised as host {host!r}, to which no client can connect")


@cases("port", [0, -1, 65_536])
def test_a_port_that_is_none(tmp_path: Path, port: int) -> None:
    [(path, message)] = said(tmp_path, port=port)
    assert path == "response.body.brokers[1].port"
    assert message.startswith(f"a broker is advertised with port {port}, ")


@cases("host", ["kafka_1", "::1", "fe80::1%eth0", "2001:db8::9092", "kafka.svc.cluster.local.", "bücher", "b-1.x"])
def test_names_that_only_some_resolver_knows(tmp_path: Path, host: str) -> None:
    assert not said(tmp_path, host, port=65_535)


def test_leaders_that_are_no_broker(tmp_path: Path) -> None:
    [(path, message)] = said(tmp_path, leaders=(1, 1234, 2, 7))
    assert path == "response.body.topics[0].partitions[1].leader_id"
    assert message == "leader 1234 is none of the 2 brokers of this response, and 1 more"


@cases(("leader", "error"), [(1, 0), (2, 0), (-1, 0), (1234, 5), (-1, 72)])
def test_leaders_that_are_brokers_or_none_yet(tmp_path: Path, leader: int, error: int) -> None:
    assert not said(tmp_path, leaders=(leader,), error=error)
