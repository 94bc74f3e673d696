"""librdkafka produces records as other programs' serializers write them: schema ids of Confluent and Apicurio, Avro,
Protobuf, JSON Schema, Connect, Debezium, headers; then consumes them all.

The schemas are those of `pcaps/records/schemas/`; Protobuf is encoded by the library, of descriptors made by hand.
"""

import io
import json
import struct
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
from confluent_kafka import Producer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from librdkafka import consume, create  # type: ignore[import-not-found]  # beside this file

SCHEMAS = Path(__file__).parents[3] / "pcaps" / "records" / "schemas"
AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def avro(number: int) -> bytes:
    schema = fastavro.schema.load_schema(SCHEMAS / "7.avsc")
    order = {
        "id": number, "customer": f"customer-{number % 3}" if number % 5 else None,
        "status": ("NEW", "PAID")[number % 2], "at": AT, "total": Decimal(number) + Decimal("0.99"),
        "lines": [{"sku": "teapot", "count": number}], "tags": {"country": "se"},
    }  # fmt: skip
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, order)
    return out.getvalue()


def shipment(number: int) -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="8.proto", package="shop", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    message = file.message_type.add(name="Shipment")
    parcel = message.nested_type.add(name="Parcel")
    parcel.field.add(name="number", number=1, label=1, type=9)
    parcel.field.add(name="seal", number=2, label=1, type=12)
    entry = message.nested_type.add(name="WeightsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=5)
    message.field.add(name="order_id", number=1, label=1, type=3)
    message.field.add(name="parcels", number=2, label=3, type=11, type_name=".shop.Shipment.Parcel")
    message.field.add(name="weights", number=3, label=3, type=11, type_name=".shop.Shipment.WeightsEntry")
    message.field.add(name="carrier", number=4, label=1, type=5)
    message.field.add(name="at", number=5, label=1, type=11, type_name=".google.protobuf.Timestamp")
    message.field.add(name="address", number=6, label=1, type=9)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Shipment"))()
    made.order_id, made.carrier, made.address = number, 2, "Storgatan 1"
    made.at.seconds = int(AT.timestamp())
    made.parcels.add(number=f"P{number}", seal=b"\x00\xff")
    made.weights["P1"] = 1200
    return made.SerializeToString()


def debezium(number: int) -> dict[str, object]:
    before, after = {"id": number, "status": "NEW"}, {"id": number, "status": "PAID"}
    return {"before": before, "after": after, "source": {"connector": "postgresql", "table": "orders"}, "op": "u"}


def records() -> list[tuple[str, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    """Topic, key, value, headers."""
    found: list[tuple[str, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = []
    connect = {"type": "struct", "optional": False, "fields": [{"field": "id", "type": "int64"}]}
    for n in range(15, 19):
        key, trace = f"order-{n}".encode(), [("traceparent", TRACE.encode()), ("tenant", b"shop")]
        order = {"order": {"id": n, "lines": [{"sku": "teapot", "count": n % 4}]}, "note": "tea\u00e9 \u202e \x1b[31m"}
        found += [
            ("orders", key, json.dumps(order).encode(), trace),
            ("orders-avro", key, b"\x00" + struct.pack(">I", 7) + avro(n), []),
            ("orders-avro", key, b"\x00" + struct.pack(">Q", 1234) + avro(n), []),
            ("orders-avro", key, avro(n), [("apicurio.value.contentId", struct.pack(">Q", 7)),
                                           ("apicurio.value.encoding", b"BINARY")]),
            ("shipments", struct.pack(">q", n), b"\x00" + struct.pack(">I", 8) + b"\x02\x02" + shipment(n), []),
            ("orders-json", key, b"\x00" + struct.pack(">I", 9) + json.dumps({"id": n}).encode(), []),
            ("orders-connect", key, json.dumps({"schema": connect, "payload": {"id": n}}).encode(), []),
            ("orders-cdc", key, json.dumps(debezium(n)).encode(), []),
            ("orders-cdc", key, None, []),
            ("bare", None, avro(n), []),
            ("odd", b"\xff\x00", b"plain text\nof two lines", [("binary", b"\x01\x02"), ("none", None)]),
            ("odd", key, b"\x00" + struct.pack(">I", 7) + b"\xff\xff\xff", []),
        ]  # fmt: skip
    return found


def main(servers: str) -> None:
    every = records()
    topics = sorted({topic for topic, *_ in every})
    for topic in topics:
        create(servers, topic, 1)
    for codec in ("none", "zstd"):
        producer = Producer({"bootstrap.servers": servers, "compression.codec": codec, "linger.ms": 50})
        for topic, key, value, headers in every[: len(every) // 2] if codec == "none" else every[len(every) // 2 :]:
            producer.produce(topic, value, key=key, headers=headers)
        producer.flush(20)
    for topic in topics:
        consume(servers, topic, "readers", sum(each[0] == topic for each in every))


if __name__ == "__main__":
    main(sys.argv[1])
