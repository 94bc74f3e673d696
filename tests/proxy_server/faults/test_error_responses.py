"""Responses with errors: of every API, version and error, from requests with anything in them."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, plan
from dissector.protocol.frame import frame_bytes
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_named, apis
from dissector.protocol.schema.model import Api
from dissector.proxy_server.faults.edits import offering, throttled, with_error
from dissector.proxy_server.faults.error_levels import CODES
from dissector.proxy_server.faults.error_responses import error_response, meaning
from tests.cases import cases
from tests.protocol.random_messages import make

ERRORS = [each for each in ErrorCode if each]
EVERY = [(each, version) for each in apis() for version in each.versions]
WITHOUT_PLACE = {("DescribeLogDirs", 0), ("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}
"""Responses whose only codes are of what the broker has, and the request does not name."""
NOT_REPEATED = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_LOG_DIRS}
PARTITION = ErrorCode.NOT_LEADER_OR_FOLLOWER


def codes(value: object) -> Iterator[int]:
    """All codes of a message, wherever they are."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in CODES:
                yield inside
            else:
                yield from codes(inside)
    elif isinstance(value, list):
        for each in value:
            yield from codes(each)


def built(name: str, version: int, request: Values, code: ErrorCode) -> Values | None:
    known = api_named(name)
    assert known is not None
    frame = error_response(known.key, version, 7, request, code)
    if frame is None:
        return None
    found = read(frame, response_layout(known.key, version, frame))
    assert (found.header["correlation_id"], found.rest) == (7, b"")
    assert [each.code for each in found.findings] in ([], ["version-fallback"])
    return found.body


@pytest.mark.long
def test_every_api_version_and_error_has_a_response_that_reads_exactly() -> None:
    without = set()
    for each, version in EVERY:
        request, _ = make(plan(each.request, version), random.Random(f"{each.name} {version}"))
        for code in ERRORS if version == each.versions.high else (PARTITION, ErrorCode.NOT_COORDINATOR):
            body = built(each.name, version, request, code)
            if body is None:
                without.add((each.name, version))
            else:
                assert set(codes(body)) <= {0, int(code)}, each.name
                assert int(code) in codes(body), each.name
    by_request = {each for each in without if each not in WITHOUT_PLACE}
    assert all(_is_empty(name, version) for name, version in by_request), by_request


def _is_empty(name: str, version: int) -> bool:
    """Whether a request that was made has nothing to which a response without a code of its own could give one."""
    known = api_named(name)
    assert known is not None
    request, _ = make(plan(known.request, version), random.Random(f"{name} {version}"))
    has_own = any(field.name in CODES for field in plan(known.response, version).fields)
    return not has_own and any(not each for each in _lists(request))


def _lists(value: object) -> Iterator[list[object] | None]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _lists(each)
            if each is None:
                yield None
    elif isinstance(value, list):
        yield value
        for one in value:
            yield from _lists(one)


def filled(of: StructPlan, at: int = 0) -> Values:
    """A request with two elements in each array, each with values of its own."""
    values: Values = {}
    for field in of.fields:
        kind, number = field.type, at
        if isinstance(kind, ArrayPlan):
            element = kind.element
            values[field.name] = [
                filled(element, 2 * at + n) if isinstance(element, StructPlan) else _value(element, 2 * at + n)
                for n in (0, 1)
            ]
        else:
            values[field.name] = filled(kind, at) if isinstance(kind, StructPlan) else _value(kind, number)
    return values


def _value(kind: object, number: int) -> object:
    name = getattr(kind, "type", "")
    if name == "string":
        return f"text {number}"
    if name == "uuid":
        return f"AAAAAAAAAAAAAAAAAAAA{'ABCDEFGHIJKLMNOP'[number]}A"
    return b"" if name in ("bytes", "records") else False if name == "bool" else number


def keys(value: object, names: frozenset[str]) -> list[tuple[str, object]]:
    """The entities of a message, in their order: what identifies them, by the names of one meaning."""
    found: list[tuple[str, object]] = []
    if isinstance(value, dict):
        for name, inside in value.items():
            if meaning(name) in names and not isinstance(inside, dict | list):
                found.append((meaning(name), inside))
            elif isinstance(inside, list) and inside and not isinstance(inside[0], dict) and meaning(name) in names:
                found += [(meaning(name), each) for each in inside]
            elif isinstance(inside, dict | list):
                found += keys(inside, names)
    elif isinstance(value, list):
        for each in value:
            found += keys(each, names)
    return found


ENTITIES = {
    "Produce": ("name", "topic_id", "index"), "Fetch": ("name", "topic_id", "index"), "ListOffsets": ("name", "index"),
    "OffsetCommit": ("name", "topic_id", "index"), "TxnOffsetCommit": ("name", "topic_id", "index"),
    "DeleteRecords": ("name", "index"), "OffsetForLeaderEpoch": ("name", "index"),
    "DescribeProducers": ("name", "index"),
    "OffsetDelete": ("name", "index"), "ShareFetch": ("topic_id", "index"), "ShareAcknowledge": ("topic_id", "index"),
    "AlterPartitionReassignments": ("name", "index"), "ElectLeaders": ("name", "index"),
    "AddPartitionsToTxn": ("transactional_id", "name", "index"), "DescribeGroups": ("group_id",),
    "ConsumerGroupDescribe": ("group_id",), "ShareGroupDescribe": ("group_id",), "DeleteGroups": ("group_id",),
    "CreateTopics": (), "DescribeTransactions": ("transactional_id",), "DescribeConfigs": ("resource_name",),
    "IncrementalAlterConfigs": ("resource_name",), "AlterConfigs": ("resource_name",), "FindCoordinator": ("key",),
    "StopReplica": ("index",), "AlterReplicaLogDirs": ("index",), "WriteTxnMarkers": ("producer_id", "name", "index"),
    "LeaveGroup": ("member_id",),
}  # fmt: skip
"""What identifies the entities of an API, where all of them are in the response again."""


@cases("name", ENTITIES)
def test_entities_of_a_request_are_repeated_in_order(name: str) -> None:
    known = api_named(name)
    assert known is not None
    for version in known.versions:
        request = filled(plan(known.request, version))
        request.pop("forgotten_topics_data", None)
        body = built(name, version, request, PARTITION)
        assert body is not None
        names = frozenset(ENTITIES[name])
        of_response = keys(body, names)
        if name == "StopReplica" and version == 0:
            continue  # one list of partitions, of which each names its topic
        if list(codes(body)) == [int(PARTITION)]:
            continue  # one error of the whole: the version names no entities
        assert set(of_response) == set(keys(request, names)), (name, version)
        errors = [each for each in codes(body) if each]
        leaves = [value for named, value in of_response if named == (ENTITIES[name] or ("",))[-1]]
        assert not leaves or len(errors) == len(leaves), (name, version)


def test_partitions_that_a_fetch_forgets_are_not_repeated() -> None:
    topic = {"topic": "orders", "partitions": [{"partition": 3}]}
    request = {"session_id": 5, "topics": [topic], "forgotten_topics_data": [{"topic": "others", "partitions": [0, 1]}]}
    body = built("Fetch", 11, request, PARTITION)
    assert body is not None
    assert (body["error_code"], body["session_id"]) == (0, 5)
    [answer] = body["responses"]
    assert answer["topic"] == "orders"
    assert [(each["partition_index"], each["error_code"]) for each in answer["partitions"]] == [(3, 6)]


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("Fetch", ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [70]),
        ("Fetch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [0, 3, 3, 3, 3]),
        ("OffsetFetch", ErrorCode.NOT_COORDINATOR, [16, 16]),
        ("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, [88, 88, 88, 88, 0] * 2),
        ("LeaveGroup", ErrorCode.NOT_COORDINATOR, [16]),
        ("LeaveGroup", ErrorCode.FENCED_INSTANCE_ID, [0, 82, 82]),
        ("Metadata", ErrorCode.LEADER_NOT_AVAILABLE, [5, 5, 0]),
        ("ApiVersions", ErrorCode.UNSUPPORTED_VERSION, [35]),
    ],
)
def test_an_error_stands_where_a_broker_puts_it(name: str, code: ErrorCode, expected: list[int]) -> None:
    known = api_named(name)
    assert known is not None
    version = known.versions.high
    body = built(name, version, filled(plan(known.request, version)), code)
    assert body is not None
    assert list(codes(body)) == expected


def response_frame(name: str, version: int, body: Values) -> bytes:
    known = api_named(name)
    assert known is not None
    return frame_bytes(response_layout(known.key, version, b""), {"correlation_id": 9}, body)


@given(each=st.sampled_from(EVERY), seed=st.integers(0, 50), code=st.sampled_from(ERRORS))
def test_a_response_of_a_broker_gets_an_error_and_nothing_else(
    each: tuple[Api, int], seed: int, code: ErrorCode
) -> None:
    known, version = each
    body, _ = make(plan(known.response, version), random.Random(seed))
    layout = response_layout(known.key, version, response_frame(known.name, version, body))
    frame = response_frame(known.name, version, body)
    changed = with_error(frame, layout, code)
    if changed is None:
        assert not list(codes(body)) or layout.body_version != version
        return
    after = read(changed, layout).body
    assert int(code) in codes(after)
    assert _blanked(after) == _blanked(read(frame, layout).body)


def _blanked(value: object) -> object:
    if isinstance(value, dict):
        return {name: 0 if name in CODES else _blanked(each) for name, each in value.items()}
    return [_blanked(each) for each in value] if isinstance(value, list) else repr(value)


def test_a_throttle_time_is_set_where_the_version_has_one() -> None:
    body = {"topics": [], "throttle_time_ms": 0}
    frame = response_frame("OffsetCommit", 3, body)
    changed = throttled(frame, response_layout(ApiKey.OFFSET_COMMIT, 3, frame), 500 * 10**6)
    assert changed is not None
    assert read(changed, response_layout(ApiKey.OFFSET_COMMIT, 3, changed)).body["throttle_time_ms"] == 500
    frame = response_frame("OffsetCommit", 2, {"topics": []})
    assert throttled(frame, response_layout(ApiKey.OFFSET_COMMIT, 2, frame), 10**9) is None


def test_older_versions_are_offered() -> None:
    offered = [
        {"api_key": key, "min_version": low, "max_version": high}
        for key, low, high in ((1, 4, 17), (0, 3, 12), (22, 0, 5))
    ]
    frame = response_frame("ApiVersions", 3, {"api_keys": offered, "finalized_features_epoch": 4})
    layout = response_layout(ApiKey.API_VERSIONS, 3, frame)
    changed = offering(frame, layout, ((1, 11), (0, 13), (22, -1)))
    assert changed is not None
    body = read(changed, layout).body
    assert [(each["api_key"], each["max_version"]) for each in body["api_keys"]] == [(1, 11), (0, 12)]
    assert body["finalized_features_epoch"] == 4
    assert offering(frame, layout, ((0, 13),)) is None
