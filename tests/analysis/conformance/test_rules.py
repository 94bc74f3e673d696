"""Each rule is kept by a capture and broken by another one: recorded where a client breaks it, made elsewhere."""

import gc
import weakref
from pathlib import Path
from typing import Any, Final

import pytest

from dissector.analysis.conformance import RULES, CheckResult, check
from dissector.analysis.conformance.events import MessageEvent, WantedMessages, events
from dissector.analysis.conformance.rules.forwarding import PATIENCE, ForwardedTags
from dissector.capture_session import Capture
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.schema.field_enums import CompressionType
from tests.analysis.conformance.making import Step, checked, made
from tests.analysis.conformance.steps import (
    UUID,
    add,
    assigned,
    batch,
    beat,
    by_id,
    commit,
    consumer_beat,
    create,
    created,
    end,
    fetch,
    fetched,
    forwarded,
    handshake,
    join,
    listed,
    login,
    metadata,
    numbered,
    offers,
    produce,
    share,
    software,
)
from tests.cases import cases
from tests.conftest import PCAPS

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


@pytest.mark.long
@pytest.mark.slow
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


@pytest.mark.long
@cases("case", SILENT)
def test_an_error_is_not_given_up_where_nobody_can_know(case: str, tmp_path: Path) -> None:
    assert counts(checked(made(tmp_path, SILENT[case])), "retriable-error-given-up")[1] == 0


@pytest.mark.long
@cases(("error", "is_lost"), [(70, True), (71, True), (106, True), (113, False)])
def test_an_error_of_a_fetch_session_loses_it(error: int, is_lost: bool, tmp_path: Path) -> None:
    failed = fetch({"session_id": 5, "session_epoch": 1}, {"error_code": error})
    steps = [failed, fetch({"session_id": 5, "session_epoch": 2})]
    assert counts(checked(made(tmp_path, steps)), "fetch-session-lost") == (0, int(is_lost))


@cases(("later", "verdicts"), [(PATIENCE - 1, 1), (PATIENCE, 0), (PATIENCE + 1, 0)])
def test_a_request_that_is_passed_on_is_remembered_for_a_while(later: int, verdicts: int, tmp_path: Path) -> None:
    with Capture([made(tmp_path, [created("ff"), forwarded("ff", keeps_tags=False)])]) as capture:
        sent, passed_on = (MessageEvent.of(each, is_request=True) for each in capture.exchanges())
    passed_on.number = sent.number + later
    memory = ForwardedTags()
    assert list(memory.request(sent)) == []
    assert len(list(memory.request(passed_on))) == verdicts


@pytest.mark.long
def test_a_real_broker_passes_on_what_its_client_sent() -> None:
    assert counts(checked(str(PCAPS / "kraft-quorum.pcapng")), "unknown-tags-dropped") == (6, 0)


@pytest.mark.long
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
    from dissector.cli.encode import CaptureTarget, add_line
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
    tested |= {
        "response-incomplete",
        "response-id",
        "request-tag-versions",
        "response-tag-versions",
        "version-refused",
        "fetch-records-null",
        "produce-magic",
        "fetch-magic",
        "produced-inner-offsets",
        "fetched-inner-offsets",
        "empty-assignment",
    }  # test_answers_and_records.py
    assert tested == {each.code for each in RULES}
    assert len(RULES) >= 40
    assert all(each.source and each.title and not each.title.endswith(".") for each in RULES)


def test_rules_hold_messages_without_decompressing_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, [produce(batch(attributes=CompressionType.GZIP))])

    def decompressed(*_: object, **_named: object) -> bytes:
        raise AssertionError("no rule is about records")

    monkeypatch.setattr(DecompressionBudget, "decompressed", decompressed)
    assert checked(path).exchanges == 1


@pytest.mark.long
@pytest.mark.slow
def test_no_rule_keeps_the_messages_that_it_saw(tmp_path: Path) -> None:
    path = made(tmp_path, [produce(batch()), fetch(response=fetched()), produce(batch())])
    rules, seen = [(rule.apis, rule.begin()) for rule in RULES], []
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        unmasked = capture.unmasked().at(range(len(capture)))
        wanted = ((exchange, WantedMessages(True, True, 2 * n, 2 * n + 1)) for n, exchange in enumerate(unmasked))
        for _, event in events(wanted):
            seen.append(weakref.ref(event.message))
            for apis, rule in rules:
                if not apis or event.api in apis:
                    list((rule.request(event) if event.is_request else rule.response(event)) or ())
        del event
    gc.collect()
    assert [each() for each in seen] == [None] * 6
