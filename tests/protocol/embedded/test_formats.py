"""Formats inside bytes fields: made by the writer, put in a message, found again beside the bytes and in the tree."""

import json
import random
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import plan, plan_of
from dissector.protocol.codec.writer import write, write_value
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.embedded.formats import FORMATS, enveloped
from dissector.protocol.embedded.values import with_decoded
from dissector.protocol.frame import JsonWriter
from dissector.protocol.message import Traced, read, trace
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.loader import api, message
from tests.cases import cases
from tests.protocol.random_messages import make
from tests.protocol.trees import assert_tiled

TEAM = {"protocol_type": "consumer"}


def framed(name: str, version: int, values: object) -> tuple[bytes, MessageLayout]:
    raw = write(name, version, values)
    return struct.pack(">ii", len(raw) + 4, 7) + raw, MessageLayout("ResponseHeader", 0, name, version)


def looked_at(name: str, version: int, values: object, context: DecodingContext = EMPTY_CONTEXT) -> tuple[Any, Traced]:
    """The values with what is decoded beside them, and the tree."""
    data, layout = framed(name, version, values)
    tree = trace(data, layout, context=context)
    assert_tiled(tree)
    decoded = with_decoded(name, read(data, layout).body, context)
    text = json.loads(json.dumps(decoded, default=bytes.hex))
    assert JsonWriter().struct(plan(name, version), text) == data[8:], "what is decoded must not disturb writing back"
    return decoded, tree


def prefixed(name: str, version: int, values: object) -> bytes:
    return struct.pack(">h", version) + write(name, version, values)


@cases("version", list(message("ConsumerProtocolSubscription").valid_versions))
def test_a_subscription_in_every_version(version: int) -> None:
    raw = prefixed("ConsumerProtocolSubscription", version, {"topics": ["orders", "payments"]})
    values = TEAM | {"group_id": "billing", "protocols": [{"name": "range", "metadata": raw}]}
    decoded, tree = looked_at("JoinGroupRequest", 5, values)
    [protocol] = decoded["protocols"]
    assert protocol["metadata"] == raw
    assert protocol["metadata_decoded"]["version"] == version
    assert protocol["metadata_decoded"]["topics"] == ["orders", "payments"]
    node = tree.tree.find("body.protocols[0].metadata.decoded.topics[1]")
    assert node is not None
    assert node.value == "payments"
    assert tree.sources[0].data[node.start + 2 : node.end] == b"payments"


def test_a_version_from_the_future_is_read_as_far_as_it_is_known() -> None:
    newest = message("ConsumerProtocolSubscription").valid_versions.high
    raw = struct.pack(">h", 99) + write("ConsumerProtocolSubscription", newest, {"topics": ["orders"]}) + b"more"
    decoded, tree = looked_at("JoinGroupRequest", 5, TEAM | {"protocols": [{"name": "range", "metadata": raw}]})
    assert decoded["protocols"][0]["metadata_decoded"]["topics"] == ["orders"]
    rest = tree.tree.find("body.protocols[0].metadata.(rest)")
    assert rest is not None
    assert rest.value == b"more"


def test_an_assignment_of_a_group_whose_protocol_the_message_does_not_name() -> None:
    raw = prefixed(
        "ConsumerProtocolAssignment", 1, {"assigned_partitions": [{"topic": "orders", "partitions": [0, 2]}]}
    )
    for context in (EMPTY_CONTEXT, DecodingContext(group_protocols={"billing": "consumer"})):
        values = {"group_id": "billing", "assignments": [{"member_id": "m", "assignment": raw}]}
        decoded, _ = looked_at("SyncGroupRequest", 3, values, context)
        found = decoded["assignments"][0]["assignment_decoded"]
        assert found["assigned_partitions"] == [{"topic": "orders", "partitions": [0, 2]}]
    other = DecodingContext(group_protocols={"billing": "mine"})
    decoded, _ = looked_at("SyncGroupRequest", 3, values, other)
    assert "assignment_decoded" not in decoded["assignments"][0]


@cases("version", [0, 1, 2])
def test_connects_groups(version: int) -> None:
    of_member, of_worker = extra_schemas()["ConnectProtocolAssignment"], extra_schemas()["ConnectProtocolMetadata"]
    assigned = {"leader": "w1", "config_offset": 4, "assignment": [{"connector": "s3", "tasks": [0, 1]}]}
    assignment = struct.pack(">h", version) + write_value(plan_of(of_member, version), assigned)
    worker = {"url": "http://w1:8083/", "config_offset": 7} | ({"allocation": assignment} if version else {})
    metadata = struct.pack(">h", version) + write_value(plan_of(of_worker, version), worker)
    values = {"protocol_type": "connect", "protocols": [{"name": "sessioned", "metadata": metadata}]}
    decoded, _ = looked_at("JoinGroupRequest", 5, values)
    found = decoded["protocols"][0]["metadata_decoded"]
    assert found["url"] == "http://w1:8083/"
    if version:
        assert found["allocation_decoded"]["assignment"] == [{"connector": "s3", "tasks": [0, 1]}]
    decoded, _ = looked_at("SyncGroupResponse", 3, {"assignment": assignment})
    assert decoded["assignment_decoded"]["leader"] == "w1"


SHORT: list[tuple[str, str, dict[str, Any], bytes, list[str]]] = [
    # What kafka-go writes: version 1 in the layout of version 0.
    ("JoinGroupRequest", "consumer", {"topics": ["orders"], "user_data": None},
     bytes.fromhex("0001 00000001 0006 6f7264657273 ffffffff"), ["owned_partitions"]),
    ("SyncGroupResponse", "consumer", {"assigned_partitions": [{"topic": "a", "partitions": [1]}]},
     bytes.fromhex("0001 00000001 0001 61 00000001 00000001"), ["user_data"]),
    ("JoinGroupRequest", "connect", {"url": "u", "config_offset": 7}, bytes.fromhex("0001 0001 75 0000000000000007"),
     ["allocation"]),
    ("SyncGroupResponse", "connect", {"error": 0, "leader": "l"}, bytes.fromhex("0001 0000 0001 6c"),
     ["leader_url", "config_offset", "assignment", "revoked", "delay"]),
]  # fmt: skip


@cases(("message", "protocol", "values", "raw", "missing"), SHORT)
def test_a_format_that_ends_early_is_read_and_says_what_is_missing(
    message: str, protocol: str, values: dict[str, Any], raw: bytes, missing: list[str]
) -> None:
    if message == "JoinGroupRequest":
        body: dict[str, Any] = {"protocol_type": protocol, "protocols": [{"name": "range", "metadata": raw}]}
        decoded, traced = looked_at(message, 5, body)
        found, path = decoded["protocols"][0]["metadata_decoded"], "body.protocols[0].metadata"
    else:
        decoded, traced = looked_at(message, 5, {"protocol_type": protocol, "assignment": raw})
        found, path = decoded["assignment_decoded"], "body.assignment"
    assert found == {"version": 1, **values, "missing_fields": missing}
    node = traced.tree.find(f"{path}.decoded")
    assert node is not None
    assert node.note.endswith(f", ends before {', '.join(missing)}")
    assert_tiled(traced)


def test_bytes_of_an_unknown_protocol_are_not_taken_for_one_that_ends_early() -> None:
    decoded, _ = looked_at("SyncGroupResponse", 3, {"assignment": SHORT[1][3]})
    assert "assignment_decoded" not in decoded


USER_DATA = [
    ("sticky", "StickyAssignorUserData", 0, {"previous_assignment": [{"topic": "orders", "partitions": [1]}]}),
    ("sticky", "StickyAssignorUserData", 1, {"previous_assignment": [], "generation": 9}),
    ("cooperative-sticky", "CooperativeStickyAssignorUserData", 0, {"generation": 4}),
    ("stream", "SubscriptionInfoData", 6, {"version": 6, "prev_tasks": [{"topic_group_id": 1, "partition": 2}]}),
    ("stream", "SubscriptionInfoData", 11, {"version": 11, "client_tags": [{"key": b"zone", "value": b"b"}]}),
]


@cases(("assignor", "name", "version", "values"), USER_DATA)
def test_user_data_of_assignors(assignor: str, name: str, version: int, values: dict[str, Any]) -> None:
    data = write_value(plan_of(extra_schemas()[name], version), values)
    raw = prefixed("ConsumerProtocolSubscription", 1, {"topics": ["orders"], "user_data": data})
    decoded, tree = looked_at("JoinGroupRequest", 5, TEAM | {"protocols": [{"name": assignor, "metadata": raw}]})
    found = decoded["protocols"][0]["metadata_decoded"]["user_data_decoded"]
    assert values.items() <= found.items()
    node = tree.tree.find("body.protocols[0].metadata.decoded.user_data.decoded")
    assert node is not None
    assert node.note == f"{name} v{version}"


def test_an_envelope_holds_a_request_and_its_answer() -> None:
    create = api(19)
    assert create is not None
    inner = write("RequestHeader", 2, {"request_api_key": 19, "request_api_version": 7, "correlation_id": 3,
                                       "client_id": "broker-1"})  # fmt: skip
    inner += write("CreateTopicsRequest", 7, {"topics": [{"name": "orders", "num_partitions": 3}]})
    principal = prefixed("DefaultPrincipalData", 0, {"type": "User", "name": "alice"})
    values = {"request_data": inner, "request_principal": principal, "client_host_address": b"\x7f\x00\x00\x01"}
    decoded, tree = looked_at("EnvelopeRequest", 0, values)
    assert decoded["request_data_decoded"]["header"]["client_id"] == "broker-1"
    assert decoded["request_data_decoded"]["body"]["topics"][0]["name"] == "orders"
    assert decoded["request_principal_decoded"]["name"] == "alice"
    assert tree.tree.find("body.request_data.body.topics[0].name") is not None
    context = DecodingContext(enveloped=enveloped(values))
    answer = write("ResponseHeader", 1, {"correlation_id": 3})
    answer += write("CreateTopicsResponse", 7, {"topics": [{"name": "orders", "error_code": 36}]})
    decoded, _ = looked_at("EnvelopeResponse", 0, {"response_data": answer}, context)
    assert decoded["response_data_decoded"]["body"]["topics"][0]["error_code"] == 36
    decoded, _ = looked_at("EnvelopeResponse", 0, {"response_data": answer})
    assert "response_data_decoded" not in decoded


@given(
    name=st.sampled_from(sorted(FORMATS.keys() - extra_schemas().keys())),
    seed=st.integers(0, 10_000),
    junk=st.binary(max_size=120),
)
def test_any_bytes_in_these_fields_are_survived(name: str, seed: int, junk: bytes) -> None:
    """Made messages whose every bytes field is junk: nothing is raised, everything tiles."""
    chance = random.Random(seed)
    version = chance.choice(list(message(name).valid_versions))
    values, _ = make(plan(name, version), chance)
    looked_at(name, version, _with(values, junk), DecodingContext(enveloped=(3, 12)))


def _with(value: Any, junk: bytes) -> Any:
    if isinstance(value, bytes):
        return junk
    if isinstance(value, dict):
        return {name: inner if name == "unknown_tagged_fields" else _with(inner, junk) for name, inner in value.items()}
    return [_with(inner, junk) for inner in value] if isinstance(value, list) else value
