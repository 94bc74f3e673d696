"""Schemas that tests give by id, and values that name one."""

import json
import struct

from dissector.core.limits import DEFAULT, Limits
from dissector.records.values.opener import ValueOpener
from dissector.records.values.schema_reference import SchemaKey
from dissector.records.values.schemas import (
    AVRO_SCHEMA,
    Schemas,
    SchemaText,
)

PROTO = b"""
syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Cart { int64 id = 1; }
message Order { string message = 1 [deprecated = true]; Kind kind = 2; repeated int32 option = 3;
  map<string, Line> lines = 4;
  google.protobuf.Timestamp at = 5; enum Kind { A = 0; B = 1; } message Line { uint32 n = 1; } reserved 9 to max; }
"""


class Given:
    """Schemas by id."""

    is_remote = False

    def __init__(self, **texts: SchemaText) -> None:
        self.texts = texts

    def text(self, key: SchemaKey) -> SchemaText | None:
        return self.texts.get(f"s{key.name}")


def avro(schema: object) -> SchemaText:
    return SchemaText(AVRO_SCHEMA, json.dumps(schema).encode())


def framed(number: int, data: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", number) + data


def opener(bounds: Limits = DEFAULT, **texts: SchemaText) -> ValueOpener:
    return ValueOpener(Schemas(Given(**texts), bounds), bounds)
