"""Keys and values of Protobuf opened: whatever the bytes and the schemas are, there is a value or a finding."""

import struct

import pytest
from google.protobuf import descriptor_pb2

from dissector.protocol.wire import uvarint_bytes
from dissector.records.values.opened import UnreadableError
from dissector.records.values.proto_text import parse_proto
from dissector.records.values.schemas import (
    PROTOBUF_TEXT,
    SchemaText,
    make_schema,
)
from tests.cases import cases
from tests.records.given import PROTO, framed, opener


def test_protobuf_is_read_by_its_text() -> None:
    line = b"\x0a\x01x\x12\x02\x08\x05"
    data = b"\x0a\x02hi\x10\x01\x1a\x02\x01\x02\x22" + bytes([len(line)]) + line + b"\x2a\x02\x08\x00"
    order = {"message": "hi", "kind": "B", "option": [1, 2], "lines": {"x": {"n": 5}}, "at": "1970-01-01T00:00:00Z"}
    found = opener(s8=SchemaText(PROTOBUF_TEXT, PROTO, "o.proto"))
    opened = found.open(framed(8, b"\x02\x02" + data))
    assert (opened.form, opened.value, opened.schema) == ("protobuf", order, "schema 8 shop.Order")
    cart = found.open(framed(8, b"\x00\x08\x07"))
    assert (cart.value, cart.schema) == ({"id": 7}, "schema 8 shop.Cart")
    by_name = b"\x0c\x0a\x0ashop.Order"
    assert found.open(b"\x00" + struct.pack(">Q", 8) + by_name + data).value == order
    for wrong in (b"\x02\x0a" + data, b"\x02", b"\xff\xff\xff\xff\x0f", b"\x02\x02\xff"):
        assert found.open(framed(8, wrong)).problem is not None


@cases(
    "text",
    [
        b"",
        b"message",
        b"message M { Nobody n = 1; }",
        b"\xff",
        b"message M { int32 a = 0; }",
        b"message M {" * 5000,
        b"message M {" * 970 + b"}" * 970,
        b"message M {" * 102 + b"}" * 102,
    ],
)
def test_a_proto_file_that_is_none_is_a_finding(text: bytes) -> None:
    with pytest.raises(UnreadableError):
        make_schema(SchemaText(PROTOBUF_TEXT, text))


def _nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = b"\x0a" + uvarint_bytes(len(data)) + data
    return data


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_nested(3000), "another schema wrote it"),
        (b"\x0a\x00" * 250_000, "more than 200,000 values"),
        (b"\x12\xff\xff\xff\xff\x07" + b"t", "another schema wrote it"),
        (b"\x08\x01\x15\x00\x00\x00\x00", "2 fields that M does not have"),
    ],
)  # fmt: skip
def test_protobuf_that_lies_recurses_or_explodes_is_a_finding(data: bytes, words: str) -> None:
    schema = SchemaText(PROTOBUF_TEXT, b'syntax = "proto3"; message M { repeated M m = 1; string t = 2; }')
    found = opener(s9=schema).open(framed(9, b"\x00" + data)).problem
    assert found is not None
    assert words in found.message


def test_a_proto_file_is_a_descriptor() -> None:
    made = parse_proto("message A { optional .B b = 1; oneof c { string d = 2; } } message B {}", "a.proto")
    assert made.message_type[0].field[0] == descriptor_pb2.FieldDescriptorProto(
        name="b", number=1, label=1, type_name=".B"
    )
    assert made.message_type[0].field[1].oneof_index == 0
