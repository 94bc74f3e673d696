"""Rules on what responses owe, on formats of records, on what a broker closes on; and what they are silent on."""

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import pytest

import dissector
from dissector.analysis.conformance import CheckResult
from dissector.analysis.conformance.rules.answers import ASKED, Listed
from dissector.protocol.schema.loader import api_named, message
from dissector.protocol.schema.model import Field
from tests.analysis.conformance.making import Step, checked, made
from tests.analysis.conformance.steps import UUID
from tests.analysis.conformance.test_rules import counts
from tests.cases import cases
from tests.conftest import PCAPS
from tests.findings.wire import Wire, pcap_of


def topics(*names: str, array: str = "topics", partitions: tuple[int, ...] = (0,), field: str = "partition_index",
           name: str = "name") -> dict[str, Any]:  # fmt: skip
    return {array: [{name: each, "partitions": [{field: n} for n in partitions]} for each in names]}


def fetches(
    asked: tuple[int, ...], answered: tuple[int, ...], *, version: int = 12, epoch: int = -1, **more: Any
) -> Step:
    by = "topic_id" if version > 12 else "topic"
    topic = UUID if version > 12 else "orders"
    request = {"session_epoch": epoch, "topics": [{by: topic, "partitions": [{"partition": n} for n in asked]}]}
    found = [
        {by: topic, "partitions": [{"partition_index": n, "records": {"size": 0, "batches": []}} for n in answered]}
    ]
    return Step("Fetch", version, request, {"responses": found if answered else []} | more)


PAIR: Final[dict[str, tuple[list[Step], list[Step]]]] = {
    "Fetch by name": ([fetches((0, 1), (1, 0))], [fetches((0, 1), (0,))]),
    "Fetch by id": ([fetches((0, 1), (0, 1), version=13)], [fetches((0, 1), (0,), version=13)]),
    "Fetch in a new session": ([fetches((0,), (0,), epoch=0)], [fetches((0, 1), (0,), epoch=0)]),
    "ListOffsets": (
        [Step("ListOffsets", 4, topics("a"), topics("a"))], [Step("ListOffsets", 4, topics("a", "b"), topics("a"))],
    ),
    "Metadata": (
        [Step("Metadata", 9, {"topics": [{"name": "a"}]}, {"topics": [{"name": "a"}]})],
        [Step("Metadata", 9, {"topics": [{"name": "a"}]}, {"topics": []})],
    ),
    "Metadata by id": (
        [Step("Metadata", 12, {"topics": [{"topic_id": UUID, "name": None}]},
              {"topics": [{"name": "a", "topic_id": UUID}]})],
        [Step("Metadata", 12, {"topics": [{"topic_id": UUID, "name": None}]}, {"topics": [{"name": "a"}]})],
    ),
    "OffsetCommit": (
        [Step("OffsetCommit", 6, topics("a"), topics("a"))], [Step("OffsetCommit", 6, topics("a"), {"topics": []})],
    ),
    "OffsetFetch": (
        [Step("OffsetFetch", 5, {"topics": [{"name": "a", "partition_indexes": [0]}]}, topics("a"))],
        [Step("OffsetFetch", 5, {"topics": [{"name": "a", "partition_indexes": [0, 1]}]}, topics("a"))],
    ),
    "OffsetFetch of groups": (
        [Step("OffsetFetch", 8, {"groups": [{"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0]}]}]},
              {"groups": [{"group_id": "g", **topics("a")}]})],
        [Step("OffsetFetch", 8, {"groups": [{"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0]}]}]},
              {"groups": [{"group_id": "h", **topics("a")}]})],
    ),
    "DescribeConfigs": (
        [Step("DescribeConfigs", 2, {"resources": [{"resource_type": 2, "resource_name": "a"}]},
              {"results": [{"resource_type": 2, "resource_name": "a", "configs": []}]})],
        [Step("DescribeConfigs", 2, {"resources": [{"resource_type": 2, "resource_name": "a"}]},
              {"results": [{"resource_type": 4, "resource_name": "a", "configs": []}]})],
    ),
    "DeleteTopics of old versions": (
        [Step("DeleteTopics", 3, {"topic_names": ["a"]}, {"responses": [{"name": "a"}]})],
        [Step("DeleteTopics", 3, {"topic_names": ["a", "b"]}, {"responses": [{"name": "a"}]})],
    ),
    "DescribeGroups": (
        [Step("DescribeGroups", 3, {"groups": ["g"]}, {"groups": [{"group_id": "g"}]})],
        [Step("DescribeGroups", 3, {"groups": ["g"]}, {"groups": []})],
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@cases("case", PAIR)
def test_what_is_asked_for_is_answered(case: str, tmp_path: Path) -> None:
    good, bad = PAIR[case]
    assert counts(checked(made(tmp_path, good)), "response-incomplete") == (1, 0)
    broken = checked(made(tmp_path, bad))
    assert counts(broken, "response-incomplete") == (0, 1)
    [words] = [each.words for each in broken.breaches if each.rule.code == "response-incomplete"]
    assert " missing: " in words


SILENT: Final[dict[str, Step]] = {
    "a session tells what changed alone": fetches((0, 1), (), epoch=3),
    "a throttled fetch is empty": fetches((0, 1), (), throttle_time_ms=100),
    "an error of the whole": fetches((0, 1), (), error_code=70),
    "all topics": Step("Metadata", 9, {"topics": None}, {"topics": []}),
    "a group that was refused": Step(
        "OffsetFetch", 8, {"groups": [{"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0]}]}]},
        {"groups": [{"group_id": "g", "error_code": 16, "topics": []}]},
    ),
}  # fmt: skip


@pytest.mark.long
@cases("case", SILENT)
def test_a_response_that_owes_nothing(case: str, tmp_path: Path) -> None:
    assert counts(checked(made(tmp_path, [SILENT[case]])), "response-incomplete")[1] == 0


def test_the_table_of_answers_names_fields_that_there_are() -> None:
    for name, several in ASKED.items():
        known = api_named(name)
        assert known is not None
        for each in several:
            for side, path in ((known.request, each.request), (known.response, each.response)):
                fields = message(side).fields
                for listed in path:
                    fields = named(fields, listed)


def named(fields: tuple[Field, ...], listed: Listed) -> tuple[Field, ...]:
    [found] = [each for each in fields if each.snake_name == listed.array]
    names = {each.snake_name for each in found.fields}
    assert not found.fields or any(set(each) <= names for each in listed.names), listed
    return found.fields


def legacy(offset: int, value: bytes, magic: int = 1, attributes: int = 0) -> bytes:
    """A message of a message set."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 0) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def wrapper(offset: int, inner: tuple[int, ...], magic: int = 1) -> bytes:
    plain = b"".join(legacy(each, b"v", magic) for each in inner)
    return legacy(offset, gzip.compress(plain), magic, 1)


def raw(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "batches": [], "truncated": {"size": len(data), "data": data.hex()}}


def produced(version: int, data: bytes) -> Step:
    body = {"acks": 1, "topic_data": [{"name": "a", "partition_data": [{"index": 0, "records": raw(data)}]}]}
    answer = {"responses": [{"name": "a", "partition_responses": [{"index": 0}]}]}
    return Step("Produce", version, body, answer)


def fetched(version: int, data: bytes | None) -> Step:
    records = None if data is None else raw(data)
    partition = {"partition_index": 0, "high_watermark": 9, "records": records}
    return Step(
        "Fetch", version, {"topics": [{"topic": "a", "partitions": [{"partition": 0}]}]},
        {"responses": [{"topic": "a", "partitions": [partition]}]},
    )  # fmt: skip


BATCH: Final = struct.pack(">qiibIhiqqqhii", 0, 49, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 0)


@pytest.mark.long
@pytest.mark.slow
@cases(
    ("step", "rule", "is_kept"),
    [
        (produced(1, legacy(0, b"v", 0)), "produce-magic", True),
        (produced(1, legacy(0, b"v", 1)), "produce-magic", False),
        (produced(2, legacy(0, b"v", 1)), "produce-magic", True),
        (produced(2, BATCH), "produce-magic", False),
        (fetched(1, legacy(0, b"v", 0)), "fetch-magic", True),
        (fetched(1, legacy(0, b"v", 1)), "fetch-magic", False),
        (fetched(3, legacy(0, b"v", 1)), "fetch-magic", True),
        (fetched(3, BATCH), "fetch-magic", False),
        (fetched(4, None), "fetch-records-null", False),
        (fetched(4, b""), "fetch-records-null", True),
        (produced(2, wrapper(0, (0, 1, 2))), "produced-inner-offsets", True),
        (produced(2, wrapper(0, (5, 6, 7))), "produced-inner-offsets", False),
        (produced(2, wrapper(0, (0, 0))), "produced-inner-offsets", False),
        (produced(1, wrapper(0, (0, 0), 0)), "produced-inner-offsets", True),
        (fetched(3, wrapper(41, (0, 1, 2))), "fetched-inner-offsets", True),
        (fetched(3, wrapper(41, (1, 3))), "fetched-inner-offsets", True),  # compacted
        (fetched(3, wrapper(41, (39, 40, 41))), "fetched-inner-offsets", False),
        (fetched(3, wrapper(41, (50, 51))), "fetched-inner-offsets", False),
        (fetched(1, wrapper(41, (40, 41), 0)), "fetched-inner-offsets", True),
        (fetched(1, wrapper(41, (0, 1), 0)), "fetched-inner-offsets", False),
    ],
)
def test_records_have_the_format_of_their_version(step: Step, rule: str, is_kept: bool, tmp_path: Path) -> None:
    assert counts(checked(made(tmp_path, [step])), rule) == (int(is_kept), int(not is_kept))


def test_versions_that_allow_all_magics_are_not_judged(tmp_path: Path) -> None:
    assert counts(checked(made(tmp_path, [fetched(4, legacy(0, b"v", 0))])), "fetch-magic") == (0, 0)


def synced(member: str, made_for: dict[str, str], got: str, error: int = 0, generation: int = 1) -> Step:
    assignments = [{"member_id": each, "assignment": data} for each, data in made_for.items()]
    body = {"group_id": "g", "generation_id": generation, "member_id": member, "assignments": assignments}
    return Step("SyncGroup", 3, body, {"error_code": error, "assignment": got})


@cases(
    ("got", "error", "generation", "expected"),
    [("00", 0, 1, (1, 0)), ("", 0, 1, (0, 1)), ("", 27, 1, (0, 0)), ("", 0, 2, (0, 0))],
)
def test_an_assignment_that_was_made_arrives(
    got: str, error: int, generation: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    steps = [synced("m1", {"m1": "", "m2": "0001"}, ""), synced("m2", {}, got, error, generation)]
    assert counts(checked(made(tmp_path, steps)), "empty-assignment") == expected


def tagged(version: int, tag: int) -> Step:
    partition = {"partition": 0, "unknown_tagged_fields": [{"tag": tag, "data": "00" * 16}]}
    return Step("Fetch", version, {"session_epoch": -1, "topics": [{"topic_id": UUID, "partitions": [partition]}]})


@cases(("tag", "expected"), [(0, (0, 1)), (99, (1, 0))])
def test_a_tag_outside_its_versions(tag: int, expected: tuple[int, int], tmp_path: Path) -> None:
    result = checked(made(tmp_path, [tagged(16, tag)]))
    assert counts(result, "request-tag-versions") == expected
    if not expected[0]:
        [breach] = [each for each in result.breaches if each.rule.code == "request-tag-versions"]
        assert breach.path == "topics[0].partitions[0]"


def test_a_tag_of_a_response_outside_its_versions(tmp_path: Path) -> None:
    body = {"responses": [], "unknown_tagged_fields": [{"tag": 0, "data": "01"}]}
    steps = [Step("Fetch", 12, {"session_epoch": -1, "topics": []}, body)]
    kept = counts(checked(made(tmp_path, steps)), "response-tag-versions")
    assert sum(kept) == 1  # whichever tags this version has


def of(*wires: Wire, folder: Path) -> CheckResult:
    return checked(pcap_of(folder, *wires))


def test_an_id_that_no_request_has(tmp_path: Path) -> None:
    wire = Wire()
    wire.request(1, "Metadata", 1, {"topics": []})
    wire.response(2, "Metadata", 1, {"brokers": [{"node_id": 1, "host": "kafka", "port": 9092}]}, number=0)
    result = of(wire, folder=tmp_path)
    assert counts(result, "response-id") == (0, 1)
    [breach] = [each for each in result.breaches if each.rule.code == "response-id"]
    assert breach.words == "the broker answered correlation id 0, which no request of this connection has; 1 waits"


def test_an_id_that_is_answered_twice(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Metadata", 1, {"topics": []})
    wire.response(5, "Metadata", 1, {}, number=1)
    result = of(wire, folder=tmp_path)
    assert counts(result, "response-id") == (1, 1)
    assert "answered correlation id 1 again" in result.breaches[-1].words


def test_responses_of_a_connection_that_was_captured_in_part_are_no_fault(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Metadata", 1, {"topics": []})
    lost = Wire()
    lost.request(1, "Metadata", 1, {"topics": []})
    lost.request(2, "Metadata", 1, {"topics": []})
    lost.response(3, "Metadata", 1, {}, number=2)
    lost.packets = lost.packets[:2] + lost.packets[3:]  # its first request
    assert counts(of(lost, folder=tmp_path), "response-id")[1] == 0


@pytest.mark.long
@cases(("name", "version", "expected"), [("Produce", 0, 1), ("Fetch", 11, 1), ("Metadata", 0, 0)])
def test_a_client_that_does_not_ask_is_held_to_what_its_broker_closes_on(
    name: str, version: int, expected: int, tmp_path: Path
) -> None:
    wire = Wire()
    wire.request(1, name, version, {"acks": 1} if name == "Produce" else {})
    wire.close(2)
    assert counts(of(wire, folder=tmp_path), "version-refused")[1] == expected


def test_a_client_whose_requests_are_answered_uses_what_its_broker_has(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Metadata", 0, {"topics": []})
    assert counts(of(wire, folder=tmp_path), "version-refused") == (1, 0)


def test_the_reason_and_the_place_of_what_cannot_be_read_are_said(tmp_path: Path) -> None:
    data = dissector.encode_response("Fetch", 0, {"responses": [{"topic": "orders", "partitions": [{}]}]},
                                     correlation_id=1)  # fmt: skip
    wire = Wire()
    wire.request(1, "Fetch", 1, {"topics": []})
    wire.received(2, data)
    [breach] = [each for each in of(wire, folder=tmp_path).breaches if each.rule.code == "response-malformed"]
    assert "runs past the end, at offset 12" in breach.words
    assert breach.words.endswith("reads exactly as Fetch v0")
    assert (breach.path, breach.start) == ("(rest)", 12)


@pytest.mark.long
@pytest.mark.slow
@cases(
    "name",
    ["java", "librdkafka", "kafka-python", "franz-go", "java-kip848", "java-transactions", "kafka-python-as-0.9"],
)
def test_real_brokers_keep_the_rules_on_brokers(name: str) -> None:
    result = checked(str(PCAPS / f"{name}.pcapng"))
    assert not [each for each in result.breaches if each.rule.side == "broker" and each.part == "response"]
