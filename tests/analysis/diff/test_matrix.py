"""The matrix of four clients, its lines checked against the defaults in the clients' documentation."""

from dissector.analysis.diff import build_matrix
from tests.analysis.diff.editing import bundled, side

CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka")


def lines() -> dict[str, dict[str, str]]:
    found = build_matrix([side(bundled(f"compare-{client}-1")) for client in CLIENTS])
    assert found.labels == tuple(f"compare-{client}-1" for client in CLIENTS)
    return {name: dict(zip(CLIENTS, words, strict=True)) for name, words in found.rows}


def test_defaults_are_those_that_the_clients_document() -> None:
    found = lines()
    assert found["acks"] == {"java": "-1 ALL", "librdkafka": "-1 ALL", "kafka-python": "-1 ALL", "aiokafka": "1 LEADER"}
    assert found["idempotence"] == {"java": "yes", "librdkafka": "no", "kafka-python": "yes", "aiokafka": "no"}
    assert set(found["compression"].values()) == {"none"}
    assert set(found["fetch max wait (ms)"].values()) == {"500"}
    assert set(found["fetch partition max"].values()) == {"1048576"}
    assert found["isolation level"]["librdkafka"] == "1 READ_COMMITTED"
    assert found["isolation level"]["java"] == "0 READ_UNCOMMITTED"
    assert found["session timeout (ms)"] == dict.fromkeys(CLIENTS, "45000") | {"aiokafka": "10000"}
    assert found["assignors"]["librdkafka"] == "range, roundrobin"
    assert found["assignors"]["aiokafka"] == "roundrobin"


def test_sessions_shutdown_and_versions_are_listed() -> None:
    found = lines()
    assert found["fetch sessions"] == {"java": "yes", "librdkafka": "no", "kafka-python": "yes", "aiokafka": "no"}
    assert found["shutdown"]["java"] == "leaves the group, closes its fetch sessions"
    assert found["shutdown"]["kafka-python"] == "leaves the group, keeps its fetch sessions open"
    assert found["Fetch version"] == {"java": "v18", "librdkafka": "v16", "kafka-python": "v12", "aiokafka": "v11"}
    assert found["InitProducerId version"]["librdkafka"] == "-"
    assert all(words.startswith(("2, every 3.0", "2, every 2.9", "3, every 3.0"))
               for words in found["heartbeats"].values())  # fmt: skip


def test_two_runs_of_one_client_differ_only_in_counts_and_times() -> None:
    found = build_matrix([side(bundled(f"compare-aiokafka-{n}")) for n in (1, 2)])
    differing = {name for name, words in found.rows if len(set(words)) > 1}
    assert differing <= {"retries", "observed linger", "fetches", "heartbeats", "offset commits", "batch size"}
