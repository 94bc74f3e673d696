"""Each rule is kept by a capture and broken by another one: recorded where a client breaks it, made elsewhere."""

import gc
import weakref
from pathlib import Path
from typing import Any, Final

import pytest

from dissector import encode_request
from dissector.analysis.conformance import RULES, CheckResult, check
from dissector.analysis.conformance.events import events
from dissector.capture_session import Capture
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.schema.field_enums import CompressionType
from tests.analysis.conformance.making import Step, checked, made
from tests.cases import cases
from tests.conftest import PCAPS

UUID = "nQgLpjoiTSKoANCOJ4AlKQ"


def batch(**changed: Any) -> dict[str, Any]:
    """A batch of two records as JSON has it."""
    records = [
        {"attributes": 0, "timestamp": 1_000, "offset": n, "key": None, "value": "76", "headers": []} for n in range(2)
    ]
    return {"base_offset": 0, "magic": 2, "attributes": 0, "last_offset_delta": 1, "records": records} | changed


def produce(*batches: dict[str, Any], version: int = 9, error: int = 0, index: int = 0, **more: Any) -> Step:
    body = {key: more.pop(key) for key in ("acks", "transactional_id") if key in more}
    partition = {"index": index, "records": {"batches": list(batches)}}
    told = more.pop("told", index)
    return Step(
        "Produce", version,
        {"acks": -1, "timeout_ms": 1_000, "topic_data": [{"name": "orders", "partition_data": [partition]}]} | body,
        {"responses": [{"name": "orders", "partition_responses": [{"index": told, "error_code": error}]}]}, **more,
    )  # fmt: skip


def numbered(first: int, epoch: int = 0, **changed: Any) -> dict[str, Any]:
    return batch(producer_id=7, producer_epoch=epoch, base_sequence=first, **changed)


def fetch(request: dict[str, Any] | None = None, response: dict[str, Any] | None = None, offset: int = 0) -> Step:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100}
    return Step(
        "Fetch", 12,
        {"topics": [{"topic": "orders", "partitions": [partition]}], "session_epoch": -1} | (request or {}),
        {"responses": []} | (response or {}),
    )  # fmt: skip


def fetched(**partition: int) -> dict[str, Any]:
    found = {"partition_index": 0, "high_watermark": 5, "last_stable_offset": 5} | partition
    return {"responses": [{"topic": "orders", "partitions": [found]}]}


def join(member: str = "", error: int = 0, given: str = "m1", generation: int = 1, **more: Any) -> Step:
    protocols = more.pop("protocols", [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff".hex()}])
    return Step(
        "JoinGroup", 5,
        {"group_id": "g", "session_timeout_ms": 9, "rebalance_timeout_ms": 60, "member_id": member,
         "protocol_type": "consumer", "protocols": protocols},
        {"error_code": error, "generation_id": generation, "member_id": given}, **more,
    )  # fmt: skip


def beat(generation: int = 1, member: str = "m1", error: int = 0, **more: Any) -> Step:
    request = {"group_id": "g", "generation_id": generation, "member_id": member}
    return Step("Heartbeat", 3, request, {"error_code": error}, **more)


def consumer_beat(epoch: int, told: int = 1, error: int = 0, **changed: Any) -> Step:
    request = {
        "group_id": "g", "member_id": "m1", "member_epoch": epoch, "rebalance_timeout_ms": 9,
        "subscribed_topic_names": ["orders"], "topic_partitions": [],
    }  # fmt: skip
    response = {"error_code": error, "member_id": "m1", "member_epoch": told}
    return Step("ConsumerGroupHeartbeat", 0, request | changed, response)


def metadata(**partition: Any) -> Step:
    found = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]} | partition
    topic = {"name": "orders", "partitions": [found]}
    broker = {"node_id": 1, "host": "a", "port": 1}
    return Step("Metadata", 9, {"topics": []}, {"brokers": [broker], "topics": [topic]})


def handshake(error: int = 0, version: int = 1) -> Step:
    return Step("SaslHandshake", version, {"mechanism": "PLAIN"}, {"error_code": error, "mechanisms": []})


def login(error: int = 0, lifetime: int = 0) -> Step:
    response = {"error_code": error, "auth_bytes": "", "session_lifetime_ms": lifetime}
    return Step("SaslAuthenticate", 1, {"auth_bytes": ""}, response)


def offers(*ranges: tuple[int, int, int], version: int = 2, error: int = 0) -> Step:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in ranges]
    return Step("ApiVersions", version, {}, {"error_code": error, "api_keys": keys})


def share(epoch: int, acknowledged: bool = False) -> Step:
    batches = [{"first_offset": 0, "last_offset": 1, "acknowledge_types": [1]}] if acknowledged else []
    partition = {"partition_index": 0, "acknowledgement_batches": batches}
    request = {
        "group_id": "g", "member_id": UUID, "share_session_epoch": epoch,
        "topics": [{"topic_id": UUID, "partitions": [partition]}], "forgotten_topics_data": [],
    }  # fmt: skip
    return Step("ShareFetch", 1, request, {"responses": [], "node_endpoints": []})


def assigned(*partitions: tuple[str, int]) -> Step:
    made_of = [
        {"member_id": member, "assignment": (b"\0\0\0\0\0\1\0\1t\0\0\0\1" + n.to_bytes(4, "big") + b"\xff" * 4).hex()}
        for member, n in partitions
    ]
    return Step("SyncGroup", 3, {"group_id": "g", "generation_id": 1, "member_id": "m1", "assignments": made_of})


def commit(offset: int) -> Step:
    partition = {"partition_index": 0, "committed_offset": offset}
    body = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    return Step("OffsetCommit", 6, body | {"topics": [{"name": "orders", "partitions": [partition]}]}, {"topics": []})


def end(**more: Any) -> Step:
    return Step(
        "EndTxn", 1, {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "committed": True}, **more
    )


def add(partition: int) -> Step:
    body = {"v3_and_below_transactional_id": "t", "v3_and_below_producer_id": 7, "v3_and_below_producer_epoch": 0}
    topics = [{"name": "orders", "partitions": [partition]}]
    return Step("AddPartitionsToTxn", 1, body | {"v3_and_below_topics": topics})


def create(name: str) -> Step:
    return Step("CreateTopics", 2, {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}]})


def listed(timestamp: int, version: int) -> Step:
    partition = {"partition_index": 0, "timestamp": timestamp}
    return Step("ListOffsets", version, {"topics": [{"name": "orders", "partitions": [partition]}]}, {"topics": []})


def by_id(topic_id: str) -> Step:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic_id": topic_id, "partitions": [partition]}]
    return Step("Fetch", 13, {"session_epoch": -1, "topics": topics}, {"responses": []})


def software(name: str, version: str) -> Step:
    return Step("ApiVersions", 3, {"client_software_name": name, "client_software_version": version}, {"api_keys": []})


def tagged(data: str) -> dict[str, Any]:
    return {"topics": [], "timeout_ms": 9, "unknown_tagged_fields": [{"tag": 70, "data": data}]}


def created(data: str) -> Step:
    return Step("CreateTopics", 7, tagged(data), {"topics": []})


def forwarded(data: str, *, keeps_tags: bool = True) -> Step:
    """An Envelope with the CreateTopics request of `created`, which is the first of its capture."""
    body = tagged(data) if keeps_tags else {"topics": [], "timeout_ms": 9}
    request = encode_request("CreateTopics", 7, body, correlation_id=1, client_id="maker")[4:]
    return Step("Envelope", 0, {"request_data": request.hex(), "client_host_address": "7f000001"}, {"error_code": 0})


TXN: Final[dict[str, Any]] = {"transactional_id": "t", "version": 9}
MADE: Final[dict[str, tuple[list[Step], list[Step]]]] = {
    "correlation-id-in-use": (
        [metadata(), metadata()],
        [Step("Metadata", 9, correlation_id=3, at=1, answered=50),
         Step("Metadata", 9, correlation_id=3, at=2, answered=60)],
    ),
    "response-order": (
        [metadata(), metadata()], [Step("Metadata", 9, at=1, answered=50), Step("Metadata", 9, at=2, answered=40)],
    ),
    "version-not-offered": (
        [offers((3, 0, 9)), metadata()], [offers((3, 0, 8)), metadata()],
    ),
    "offered-ranges": ([offers((3, 0, 9))], [offers((3, 9, 8)), offers((3, 0, 1), (3, 0, 1))]),
    "api-versions-fallback": (
        [offers(error=35), offers((3, 0, 9), version=0)], [offers(error=35), offers((3, 0, 9), version=2)],
    ),
    "client-software-name": (
        [software("kaf-1.0", "1")], [software("my client", "")],
    ),
    "throttle-time": (
        [Step("Metadata", 9, {}, {"throttle_time_ms": 100}), Step("Metadata", 9, at=500)],
        [Step("Metadata", 9, {}, {"throttle_time_ms": 100}), Step("Metadata", 9, at=20)],
    ),
    "sasl-handshake-first": ([handshake(), login()], [login(), handshake(33), login()]),
    "request-during-login": (
        [handshake(), Step("ApiVersions", 2), login(), metadata()], [handshake(), metadata(), login()],
    ),
    "request-after-refused-login": ([handshake(), login(58)], [handshake(), login(58), metadata()]),
    "sasl-session-lifetime": (
        [handshake(), login(lifetime=50), metadata()],
        [handshake(), login(lifetime=50), metadata()._replace(at=500)],
    ),
    "acks-value": ([produce(batch())], [produce(batch(), acks=2)]),
    "one-batch-a-partition": ([produce(batch())], [produce(batch(), batch()), produce()]),
    "batch-crc": ([produce(batch())], [produce(batch(crc=1, crc_valid=False))]),
    "batch-offsets": ([produce(batch())], [produce(batch(last_offset_delta=5))]),
    "batch-codec": ([produce(batch(attributes=4), version=7)], [produce(batch(attributes=4), version=6)]),
    "batch-attributes": ([produce(batch())], [produce(batch(attributes=8))]),
    "idempotent-acks": ([produce(numbered(0))], [produce(numbered(0), acks=1)]),
    "idempotent-in-flight": (
        [produce(numbered(n * 2), at=n, answered=90 + n) for n in range(1, 6)],
        [produce(numbered(n * 2), at=n, answered=90 + n) for n in range(1, 7)],
    ),
    "sequence-numbers": (
        [produce(numbered(0)), produce(numbered(2)), produce(numbered(2)), produce(numbered(0, 1))],
        [produce(numbered(0)), produce(numbered(3)), produce(numbered(4, 1))],
    ),
    "producer-epoch": (
        [produce(numbered(0)), produce(numbered(0, 1))], [produce(numbered(0, 1)), produce(numbered(2, 0))],
    ),
    "fenced-producer": (
        [produce(numbered(0), error=90), produce(numbered(0, 1))],
        [produce(numbered(0), error=90), produce(numbered(0))],
    ),
    "fatal-error-retried": (
        [produce(batch(), error=10), produce(batch(base_timestamp=999))],
        [produce(batch(), error=10), produce(batch())],
    ),
    "produce-partitions": ([produce(batch())], [produce(batch(), told=1)]),
    "fetch-session-epoch": (
        [fetch({"session_epoch": 0}, {"session_id": 5}),
         fetch({"session_id": 5, "session_epoch": 1}, {"session_id": 5})],
        [fetch({"session_epoch": 0}, {"session_id": 5}),
         fetch({"session_id": 5, "session_epoch": 3}, {"session_id": 5})],
    ),
    "fetch-session-lost": (
        [fetch({"session_id": 5, "session_epoch": 1}, {"error_code": 70}), fetch({"session_epoch": 0})],
        [fetch({"session_id": 5, "session_epoch": 1}, {"error_code": 70}),
         fetch({"session_id": 5, "session_epoch": 2})],
    ),
    "fetch-limits": ([fetch()], [fetch({"min_bytes": -1})]),
    "isolation-level": ([fetch()], [fetch({"isolation_level": 2})]),
    "offset-out-of-range": (
        [fetch(None, fetched(error_code=1), 9), fetch(offset=3)],
        [fetch(None, fetched(error_code=1), 9), fetch(offset=9)],
    ),
    "list-offsets-timestamp": ([listed(-3, 7), listed(-1, 4)], [listed(-3, 6)]),
    "watermarks": ([fetch(None, fetched())], [fetch(None, fetched(last_stable_offset=6))]),
    "member-id-required": ([join(error=79), join("m1")], [join(error=79), join("")]),
    "group-protocols": ([join()], [join(protocols=[])]),
    "subscription-format": (
        [join()], [join(protocols=[{"name": "range", "metadata": b"\0\1\0\0\0\0\xff\xff\xff\xff".hex()}])],
    ),
    "assignment": ([assigned(("m1", 0), ("m2", 1))], [assigned(("m1", 0), ("m2", 0))]),
    "stale-generation": ([join(), beat(1)], [join(generation=2), beat(1)]),
    "unknown-member": ([beat(error=25), join("")], [beat(error=25), beat()]),
    "rebalance-ignored": ([join(), beat(error=27), join("m1")], [join(), beat(error=27), beat(error=27, at=500)]),
    "committed-offset": ([commit(3)], [commit(-1)]),
    "not-coordinator": (
        [beat(error=16), Step("FindCoordinator", 1, {"key": "g"}), beat()], [beat(error=16), beat()],
    ),
    "first-heartbeat": ([consumer_beat(0)], [consumer_beat(0, subscribed_topic_names=None, topic_partitions=None)]),
    "member-epoch": ([consumer_beat(0), consumer_beat(1)], [consumer_beat(0), consumer_beat(2)]),
    "share-session-epoch": ([share(0), share(1, acknowledged=True)], [share(0, acknowledged=True), share(4)]),
    "generation-order": ([join(), join("m1", generation=2)], [join(generation=2), join("m1", generation=1)]),
    "topic-name": ([create("orders.v1")], [create("orders/v1"), create("..")]),
    "topic-id": ([by_id(UUID)], [by_id("A" * 22)]),
    "transactional-batch": (
        [add(0), produce(numbered(0, attributes=16), **TXN)], [produce(numbered(0, attributes=16))],
    ),
    "partition-not-added": (
        [add(0), produce(numbered(0, attributes=16), **TXN)],
        [add(0), produce(numbered(0, attributes=16), index=1, **TXN)],
    ),
    "transaction-end-in-flight": (
        [add(0), produce(numbered(0, attributes=16), **TXN), end()],
        [add(0), produce(numbered(0, attributes=16), at=20, answered=90, **TXN), end(at=30)],
    ),
    "retriable-error-given-up": (
        [produce(batch(), error=6), produce(batch(), at=1_000), beat(at=9_000)],
        [produce(batch(), error=6), produce(batch(), index=1, at=1_000), beat(at=9_000)],
    ),
    "unknown-tags-dropped": (
        [created("ff"), forwarded("ff")], [created("ff"), forwarded("ff", keeps_tags=False)],
    ),
    "leader-listed": ([metadata()], [metadata(leader_id=2)]),
    "isr-nodes": ([metadata()], [metadata(isr_nodes=[1, 2])]),
}  # fmt: skip
"""Steps that keep a rule, and steps that break it."""
RECORDED: Final = {"request-trailing-bytes": "librdkafka", "throttle-time": "trouble-throttled"}
"""Recordings in which a real client breaks a rule."""


def counts(result: CheckResult, code: str) -> tuple[int, int]:
    [rule] = [each for each in RULES if each.code == code]
    return result.counts(rule)


@cases("code", MADE)
def test_a_rule_is_kept_and_broken(code: str, tmp_path: Path) -> None:
    good, bad = MADE[code]
    kept = checked(made(tmp_path, good))
    assert counts(kept, code)[0], "it applies"
    assert not counts(kept, code)[1], [each.words for each in kept.breaches]
    broken = checked(made(tmp_path, bad))
    assert counts(broken, code)[1]
    [breach, *_] = [each for each in broken.breaches if each.rule.code == code]
    assert breach.words
    assert breach.size > 0


@pytest.mark.parametrize("code", RECORDED)
def test_a_real_client_breaks_it(code: str) -> None:
    assert counts(checked(str(PCAPS / f"{RECORDED[code]}.pcapng")), code)[1]


SILENT: Final = {
    "tried again": [beat(error=14, at=100), beat(at=9_000)],
    "the capture ends": [produce(batch(), error=6), beat(at=4_000)],
    "a client that only looks for the leader": [produce(batch(), error=6), metadata()._replace(at=9_000)],
    "no such request at all": [produce(batch(), error=10), beat(at=9_000)],
}


@cases("case", SILENT)
def test_an_error_is_not_given_up_where_nobody_can_know(case: str, tmp_path: Path) -> None:
    assert counts(checked(made(tmp_path, SILENT[case])), "retriable-error-given-up")[1] == 0


@cases(("error", "is_lost"), [(70, True), (71, True), (106, True), (113, False)])
def test_an_error_of_a_fetch_session_loses_it(error: int, is_lost: bool, tmp_path: Path) -> None:
    failed = fetch({"session_id": 5, "session_epoch": 1}, {"error_code": error})
    steps = [failed, fetch({"session_id": 5, "session_epoch": 2})]
    assert counts(checked(made(tmp_path, steps)), "fetch-session-lost") == (0, int(is_lost))


def test_a_real_broker_passes_on_what_its_client_sent() -> None:
    assert counts(checked(str(PCAPS / "kraft-quorum.pcapng")), "unknown-tags-dropped") == (6, 0)


@pytest.mark.slow
@cases("name", ["java-sasl-scram-sha-512", "java-sasl-refused", "java-admin", "plain-socket-sasl-v0"])
def test_rules_see_the_same_where_secrets_are_masked(name: str) -> None:
    path = str(PCAPS / f"{name}.pcapng")
    masked = Capture([path])
    for _ in masked.read():
        pass
    one, other = check([(path, masked)]), checked(path)
    assert (one.kept, one.broken) == (other.kept, other.broken)


@pytest.mark.parametrize(("code", "part"), [("request", "request"), ("response", "response")])
def test_bytes_too_many_and_too_few(code: str, part: str, tmp_path: Path) -> None:
    whole = made(tmp_path, [metadata()])
    assert counts(checked(whole), f"{code}-malformed") == (1, 0)
    assert counts(checked(whole), f"{code}-trailing-bytes") == (1, 0)
    for rest, broken in (("00", "trailing-bytes"), (None, "malformed")):
        step = metadata()
        lines = {"request": dict(step.request), "response": dict(step.response or {})}
        path = made_with(tmp_path, part, lines, rest)
        assert counts(checked(path), f"{code}-{broken}") == (0, 1)


def made_with(folder: Path, part: str, bodies: dict[str, Any], rest: str | None) -> str:
    """A Metadata exchange with bytes behind one of its bodies, or with nothing but a byte in place of it."""
    from dissector.cli.encode_targets import CaptureTarget, add_line
    from tests.analysis.conformance.making import START_NS

    line: dict[str, Any] = {
        "kind": "exchange", "number": 1, "connection": 1, "client": "10.0.0.1:50000", "server": "10.0.0.2:9092",
        "api": "Metadata", "api_version": 9, "client_id": "maker", "correlation_id": 1,
    }  # fmt: skip
    for n, (side, body) in enumerate(bodies.items()):
        line[side] = {"time_ns": START_NS + n, "body": body}
        if side == part:
            line[side] |= {"rest": rest} if rest else {"body": {}, "body_bytes": "", "rest": "7f"}
    target = CaptureTarget()
    add_line(target, line)
    path = folder / "rest.pcapng"
    with path.open("wb") as file:
        file.writelines(target.pcapng("a test"))
    return str(path)


def test_each_rule_has_its_tests_and_its_source() -> None:
    tested = {*MADE, "request-trailing-bytes", "response-trailing-bytes", "request-malformed", "response-malformed"}
    assert tested == {each.code for each in RULES}
    assert len(RULES) >= 40
    assert all(each.source and each.title and not each.title.endswith(".") for each in RULES)


def test_rules_hold_messages_without_decompressing_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, [produce(batch(attributes=CompressionType.GZIP))])

    def decompressed(*_: object, **_named: object) -> bytes:
        raise AssertionError("no rule is about records")

    monkeypatch.setattr(DecompressionBudget, "decompressed", decompressed)
    assert checked(path).exchanges == 1


def test_no_rule_keeps_the_messages_that_it_saw(tmp_path: Path) -> None:
    path = made(tmp_path, [produce(batch()), fetch(response=fetched()), produce(batch())])
    rules, seen = [rule() for rule in RULES], []
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        for event in events(capture.unmasked()):
            seen.append(weakref.ref(event.message))
            for rule in rules:
                if not rule.apis or event.api in rule.apis:
                    list(rule.request(event) if event.is_request else rule.response(event))
        del event
    gc.collect()
    assert [each() for each in seen] == [None] * 6
