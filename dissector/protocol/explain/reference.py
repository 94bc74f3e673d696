"""Reference of everything on the wire but messages: primitive types, record batches, versions of headers.

Sizes, layouts and codecs come from the code that reads them. The descriptions are ours, after Kafka's protocol guide,
KIP-482 (compact types, tagged fields), KIP-98 (batches), KIP-32 (timestamps), KIP-82 (headers of records).
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from dissector.protocol.explain.diagram import Box
from dissector.protocol.primitives import INT32, PRIMITIVES, STRING, Primitive, array
from dissector.protocol.records.batch import HEADER_FIELDS
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import apis
from dissector.protocol.schema.model import Api, Versions


class TypeLine(NamedTuple):
    """A primitive type: its layout, and a value with its bytes."""

    name: str
    words: str
    value: str
    data: bytes


_WORDS: Final[dict[str, tuple[str, object]]] = {
    "BOOLEAN": ("1 byte: 0 false, anything else true", True),
    "INT8": ("1 byte, two's complement", -1),
    "INT16": ("2 bytes, big-endian", 258),
    "INT32": ("4 bytes, big-endian", 9092),
    "INT64": ("8 bytes, big-endian", -1),
    "UINT16": ("2 bytes, big-endian, no sign", 65_535),
    "UINT32": ("4 bytes, big-endian, no sign", 4_000_000_000),
    "FLOAT64": ("8 bytes, IEEE 754", 0.5),
    "UUID": ("16 bytes; shown as 22 characters of URL-safe base64", "AAECAwQFBgcICQoLDA0ODw"),
    "VARINT": ("zig-zag, then as UNSIGNED_VARINT; 32 bits", -3),
    "VARLONG": ("zig-zag, then as UNSIGNED_VARINT; 64 bits", 1_000_000),
    "UNSIGNED_VARINT": ("7 bits a byte, low ones first; the high bit: more follow", 300),
    "STRING": ("INT16 length, then UTF-8", "kafka"),
    "BYTES": ("INT32 length, then the bytes", b"\xca\xfe"),
    "RECORDS": ("INT32 length, then record batches", b"\x00\x01"),
    "TAGGED_FIELDS": ("UNSIGNED_VARINT count; of each tag, size, value", [{"tag": 0, "data": b"\x01"}]),
}
_NULL: Final = {"": "length -1: null", "COMPACT_": "length 0: null"}


def primitive_lines() -> Iterator[TypeLine]:
    """Yield all primitive types, arrays last; the bytes are the encoder's."""
    for each in {kind.name: kind for kind in PRIMITIVES}.values():  # nullable records have the same name
        yield _primitive(each)
    for compact in (False, True):
        name = "UNSIGNED_VARINT count + 1" if compact else "INT32 count"
        kind = array(INT32, compact=compact)
        yield TypeLine(kind.name, f"{name}, then the elements", "[7]", kind.write([7]))
    nullable = array(STRING, nullable=True)
    yield TypeLine(f"{nullable.name} (null)", "count -1; compact: count 0", "null", nullable.write(None))


def _primitive(kind: Primitive) -> TypeLine:
    compact = kind.name.startswith("COMPACT_")
    base = kind.name.removeprefix("COMPACT_").removeprefix("NULLABLE_")
    words, value = _WORDS[base]
    if compact:
        words = "UNSIGNED_VARINT length + 1, then " + words.partition("then ")[2]
    if "NULLABLE_" in kind.name:
        words, value = _NULL["COMPACT_" if compact else ""], None
    shown = (
        {None: "null", True: "true"}.get(value, str(value)) if isinstance(value, bool | None) else _value_text(value)
    )
    return TypeLine(kind.name, words, shown, kind.write(value))


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return "tag 0: 01"
    return value.hex() if isinstance(value, bytes) else f'"{value}"' if isinstance(value, str) else str(value)


RECORD_FIELDS: Final = (
    ("(length)", "VARINT", "bytes that follow"),
    ("attributes", "INT8", "no bit is used"),
    ("timestamp_delta", "VARLONG", "added to base_timestamp"),
    ("offset_delta", "VARINT", "added to base_offset"),
    ("key", "VARINT length, bytes", "length -1: null"),
    ("value", "VARINT length, bytes", "length -1: null, a tombstone"),
    ("headers", "VARINT count, headers", "of each: key (length, UTF-8), value (length or -1, bytes)"),
)
BATCH_BITS: Final = (
    ("0-2", "the codec of the records"),
    ("3", "timestamp type: 0 CreateTime, 1 LogAppendTime (all records have max_timestamp)"),
    ("4", "part of a transaction"),
    ("5", "a control batch: its records end transactions or steer a Raft quorum"),
    ("6", "base_timestamp is the delete horizon of a compacted batch (KIP-534)"),
    ("7-15", "not used"),
)
MESSAGE_SET_FIELDS: Final = (
    ("offset", "INT64", "in a compressed set of v1 relative to the outer message"),
    ("message_size", "INT32", "bytes that follow"),
    ("crc", "UINT32", "CRC-32 (not CRC-32C) over all from magic on"),
    ("magic", "INT8", "0 (before Kafka 0.10) or 1"),
    ("attributes", "INT8", "bits 0-2 codec (none, gzip, snappy, lz4); bit 3, v1 only: timestamp type"),
    ("timestamp", "INT64", "v1 only: milliseconds since 1970"),
    ("key", "BYTES", "length -1: null"),
    ("value", "BYTES", "length -1: null; compressed: a message set of its own"),
)


def batch_boxes() -> list[Box]:
    """Return the boxes of a record batch."""
    return [*(Box(name, size) for name, _, size in HEADER_FIELDS), Box("records, compressed as one where it is", None)]


def message_boxes(magic: int) -> list[Box]:
    """Return the boxes of a message of magic 0 or 1."""
    sizes = {"INT64": 8, "INT32": 4, "UINT32": 4, "INT8": 1}
    fields = [(name, kind) for name, kind, _ in MESSAGE_SET_FIELDS if magic or name != "timestamp"]
    return [
        Box(name, sizes[kind]) if kind in sizes else Box(f"{name}  BYTES: INT32 length, bytes", None)
        for name, kind in fields
    ]


class HeaderLine(NamedTuple):
    """Versions of an API that have the same headers."""

    api: Api
    versions: Versions
    request: int
    response: int


def header_lines() -> Iterator[HeaderLine]:
    """Yield the versions of headers, API by API."""
    for api in apis():
        both = [(request_header_version(api.key, v), response_header_version(api.key, v), v) for v in api.versions]
        for (request, response), run in groupby(both, lambda each: each[:2]):
            versions = [version for *_, version in run]
            yield HeaderLine(api, Versions(versions[0], versions[-1]), request, response)
