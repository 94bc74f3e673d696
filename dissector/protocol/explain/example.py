"""Makes an example of a message: invented values, their frame from our encoder, and its tree.

The values depend on fields' names, so that a new message needs no entry here. Every structure has its first tagged
field.
"""

from dataclasses import dataclass
from typing import Final

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, plan
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.codec.writer import write
from dissector.protocol.message import trace
from dissector.protocol.message_layout import request_layout, response_layout, sized
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.model import MessageSchema
from dissector.protocol.tree import ByteSource, Node

CORRELATION_ID: Final = 7
_UUID: Final = "AAECAwQFBgcICQoLDA0ODw"
_STRINGS: Final = (
    ("software_name", "kdissect"), ("software_version", "1.0"), ("host", "broker-1"), ("client", "orders-app"),
    ("rack", "rack-a"), ("topic", "orders"), ("group", "billing"), ("member", "member-1"), ("leader", "member-1"),
    ("cluster", "cluster-1"), ("transactional", "payments"), ("protocol_type", "consumer"), ("protocol", "range"),
    ("mechanism", "PLAIN"), ("principal", "alice"), ("user", "alice"), ("message", ""), ("config", "retention.ms"),
    ("name", "orders"),
)  # fmt: skip
_INTEGERS: Final = (
    ("error_code", 0), ("correlation_id", CORRELATION_ID), ("acks", -1), ("port", 9092),
    ("timestamp", 1_790_000_000_000), ("index", 2),
    ("_ms", 500), ("bytes", 1_048_576), ("partition", 2), ("epoch", 5), ("offset", 42), ("producer_id", 4_001),
    ("node", 1), ("broker", 1), ("replica", 1), ("leader", 1), ("version", 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """Bytes and their tree."""

    data: bytes
    tree: Node


def example(message: MessageSchema, version: int) -> Example:
    """Return a frame for requests and responses, and the message's bytes for anything else."""
    body = write(message.name, version, _struct(plan(message.name, version)))
    key = message.api_key
    if message.type == "request" and key is not None:
        head: dict[str, object] = {"request_api_key": key, "request_api_version": version}
        header = _header("RequestHeader", request_header_version(key, version), head)
        data = sized(header + body)
        return Example(data, trace(data, request_layout(key, version)).tree)
    if message.type == "response" and key is not None:
        data = sized(_header("ResponseHeader", response_header_version(key, version), {}) + body)
        return Example(data, trace(data, response_layout(key, version, data)).tree)
    return Example(body, _alone(message, version, body))


def _alone(message: MessageSchema, version: int, data: bytes) -> Node:
    """Return the tree of a message outside of frames."""
    root = Node(message.name, "", "STRUCT", 0, len(data))
    records = RecordTracer([ByteSource(0, message.name, data)], frame_budget())
    Tracer(data, 0, len(data), records).struct(plan(message.name, version), root)
    return root


def _header(name: str, version: int, values: dict[str, object]) -> bytes:
    values |= {"correlation_id": CORRELATION_ID}
    if name == "RequestHeader" and version > 0:
        values["client_id"] = "orders-app"
    return write(name, version, values)


def _struct(layout: StructPlan) -> dict[str, object]:
    return {field.name: _value(field, field.type) for field in (*layout.fields, *layout.tagged[:1])}


def _value(field: FieldPlan, kind: TypePlan) -> object:
    match kind:
        case ScalarPlan():
            return _scalar(field.name, kind)
        case VariablePlan("string"):
            return next((value for part, value in _STRINGS if part in field.name), "example")
        case VariablePlan("records"):
            return example_batch()
        case VariablePlan():
            return b"example"
        case ArrayPlan():
            return [_value(field, kind.element)]
        case StructPlan():
            return _struct(kind)


def _scalar(name: str, kind: ScalarPlan) -> object:
    if kind.type in ("bool", "uuid", "float64"):
        return {"bool": True, "uuid": _UUID, "float64": 0.5}[kind.type]
    value = next((value for part, value in _INTEGERS if part in name), 3)
    return min(value, (1 << 8 * kind.size - 1) - 1)


def example_batch() -> bytes:
    """Return a batch (magic 2) of one record with a header."""
    headers = [{"key": "trace", "value": "0102"}]
    record = {"timestamp": 1_790_000_000_000, "key": b"order-1".hex(), "value": b"2 apples".hex(), "headers": headers}
    return batch_bytes({"base_offset": 42, "partition_leader_epoch": 5, "records": [record]})
