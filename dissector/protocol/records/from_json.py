"""Encodes a `records` object (`to_json`): batches, messages, and bytes that are neither.

Sizes, counts and checksums are computed; a missing field has the value that a producer would send. The original
compressed section is used again if it has the records of the object; else they are compressed again. A checksum that
was marked as wrong stays wrong. Bytes come in hex, from JSON, or as bytes. A value of the wrong type
raises `EncodeError`.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import google_crc32c

from dissector.protocol.records.batch import CRC_FROM, Batch
from dissector.protocol.records.compression import CODEC_MASK, CODECS, DecompressionError
from dissector.protocol.records.entries import LOG_OVERHEAD, RecordsEntryKind
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.to_json import frame_budget, message_objects, record_objects
from dissector.protocol.wire import EncodeError, WireError, varint_bytes, varlong_bytes

Values = Mapping[str, Any]
_START: Final = struct.Struct(">qiibI")
_HEAD: Final = struct.Struct(">hiqqqhii")
_CRC_SIZE: Final = 4


def records_bytes(value: Values) -> bytes:
    """Return the bytes of a `records` field. Raises `EncodeError`."""
    parts: list[bytes] = []
    for number, each in enumerate(structs(value, "batches")):
        try:
            parts.append(_part(each))
        except EncodeError as error:
            raise error.under(f"batches[{number}]") from None
    for kind in (RecordsEntryKind.TRUNCATED, RecordsEntryKind.UNKNOWN):
        rest = value.get(kind.value)
        if isinstance(rest, Mapping):
            parts.append(raw(rest, "data") or b"")
    return b"".join(parts)


def _part(value: Values) -> bytes:
    if "magic" not in value and "data" in value:
        return raw(value, "data") or b""  # a message that could not be read
    return message_bytes(value) if value.get("magic", 2) in (0, 1) else batch_bytes(value)


def batch_bytes(value: Values) -> bytes:
    """Return the bytes of a batch. Raises `EncodeError`."""
    try:
        head = _head(value)
        body = head + _section(value, head)
        crc = google_crc32c.value(body)
        if value.get("crc_valid") is False:
            crc = integer(value, "crc", crc)
        epoch = integer(value, "partition_leader_epoch", -1)
        size = len(body) + CRC_FROM - LOG_OVERHEAD
        return _START.pack(integer(value, "base_offset", 0), size, epoch, 2, crc) + body
    except struct.error as error:
        raise EncodeError(f"a field of the batch is out of range: {error}") from None


def _head(value: Values) -> bytes:
    """Return the header from the attributes on. Missing fields get the values that a producer would send."""
    records = structs(value, "records") if value.get("records") is not None else ()
    times = [integer(record, "timestamp", -1) for record in records]
    return _HEAD.pack(
        integer(value, "attributes", 0),
        integer(value, "last_offset_delta", max(_offset_deltas(value), default=0)),
        integer(value, "base_timestamp", times[0] if times else -1),
        integer(value, "max_timestamp", max(times, default=-1)),
        integer(value, "producer_id", -1),
        integer(value, "producer_epoch", -1),
        integer(value, "base_sequence", -1),
        integer(value, "records_count", 0) if value.get("records") is None else len(records),
    )


def _offset_deltas(value: Values) -> list[int]:
    base = integer(value, "base_offset", 0)
    records = structs(value, "records") if value.get("records") is not None else ()
    return [integer(record, "offset", base + number) - base for number, record in enumerate(records)]


def _section(value: Values, head: bytes) -> bytes:
    """Return the records section. The original compressed section is used again if it has the same records."""
    codec = integer(value, "attributes", 0) & CODEC_MASK
    original = raw(value, "compressed" if codec else "data")
    if value.get("records") is None:
        return original or b""
    if codec and original is not None and _has_same_records(value, head, original):
        return original
    if codec not in CODECS:
        raise EncodeError(f"codec {codec} is not known", "attributes")
    return CODECS[codec].compress(_plain(value, head))


def _has_same_records(value: Values, head: bytes, section: bytes) -> bool:
    start = _START.pack(integer(value, "base_offset", 0), 0, 0, 2, 0)
    try:
        records = record_objects(Batch.read(start + head + section), frame_budget())
        return records == with_bytes(structs(value, "records"))
    except (DecompressionError, WireError):
        return False


def _plain(value: Values, head: bytes) -> bytes:
    base_timestamp = _HEAD.unpack(head)[2]
    parts: list[bytes] = []
    pairs = zip(structs(value, "records"), _offset_deltas(value), strict=True)
    for number, (record, offset) in enumerate(pairs):
        try:
            body = _record(record, offset, base_timestamp)
        except EncodeError as error:
            raise error.under(f"records[{number}]") from None
        parts += (varint_bytes(len(body)), body)
    return b"".join(parts)


def _record(record: Values, offset: int, base_timestamp: int) -> bytes:
    delta = integer(record, "timestamp", base_timestamp) - base_timestamp
    headers = structs(record, "headers")
    parts = [
        b"\x00", varlong_bytes(integer(record, "timestamp_delta", delta)), varint_bytes(offset),
        _varint_bytes(record, "key"), _varint_bytes(record, "value"), varint_bytes(len(headers)),
    ]  # fmt: skip
    for header in headers:
        key = str(header.get("key", "")).encode("utf-8", "surrogateescape")
        parts += (varint_bytes(len(key)), key, _varint_bytes(header, "value"))
    return b"".join(parts)


def _varint_bytes(values: Values, name: str) -> bytes:
    content = raw(values, name)
    return varint_bytes(-1) if content is None else varint_bytes(len(content)) + content


def message_bytes(value: Values) -> bytes:
    """Return the bytes of a message. Raises `EncodeError`."""
    magic, attributes = integer(value, "magic", 1), integer(value, "attributes", 0)
    codec = attributes & CODEC_MASK
    content = _wrapped(value, magic, codec) if codec else raw(value, "value")
    try:
        body = struct.pack(">bb", magic, attributes)
        if magic:
            body += struct.pack(">q", integer(value, "timestamp", -1))
        body += _int32_bytes(raw(value, "key")) + _int32_bytes(content)
        crc = integer(value, "crc", 0) if value.get("crc_valid") is False else zlib.crc32(body)
        return struct.pack(">qiI", integer(value, "offset", 0), len(body) + _CRC_SIZE, crc) + body
    except struct.error as error:
        raise EncodeError(f"a field of the message is out of range: {error}") from None


def _wrapped(value: Values, magic: int, codec: int) -> bytes:
    """Return the compressed message set of a wrapper: the original one if it has the same messages."""
    original = raw(value, "compressed")
    if value.get("messages") is None:
        return original or b""
    inner = structs(value, "messages")
    if original is not None and _has_same_messages(value, original, inner):
        return original
    if codec not in CODECS:
        raise EncodeError(f"codec {codec} is not known", "attributes")
    section = CODECS[codec].compress(_set(inner, relative=magic == 1))
    return section if magic else CODECS[codec].as_magic_0(section)


def _set(messages: Sequence[Values], *, relative: bool) -> bytes:
    first = integer(messages[0], "offset", 0) if messages and relative else 0
    offsets = [integer(message, "offset", first + number) - first for number, message in enumerate(messages)]
    return b"".join(message_bytes({**each, "offset": at}) for each, at in zip(messages, offsets, strict=True))


def _has_same_messages(value: Values, section: bytes, inner: Sequence[Values]) -> bool:
    magic = integer(value, "magic", 1)
    timestamp = integer(value, "timestamp", -1) if magic else None
    attributes, offset = integer(value, "attributes", 0), integer(value, "offset", 0)
    wrapper = LegacyRecord(b"", offset, 0, 0, magic, attributes, timestamp, None, section)
    try:
        return message_objects(wrapper, frame_budget()) == with_bytes(inner)
    except (DecompressionError, WireError):
        return False


def _int32_bytes(content: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if content is None else struct.pack(">i", len(content)) + content


def raw(values: Values, name: str) -> bytes | None:
    """Return bytes or None; None if the name is missing."""
    value = values.get(name)
    if value is None or isinstance(value, bytes):
        return value
    try:
        return bytes.fromhex(value)
    except (ValueError, TypeError):
        raise EncodeError(f"{value!r:.40} is not hex", name) from None


def integer(values: Values, name: str, default: int) -> int:
    """Return an integer; `default` if the name is missing."""
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError(f"{value!r:.40} is not an integer", name)
    return value


def structs(values: Values, name: str) -> Sequence[Values]:
    """Return a list of structures; empty if the name is missing."""
    value = values.get(name, ())
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise EncodeError("is not a list of structures", name)
    return value


def with_bytes(values: Sequence[Values]) -> list[dict[str, Any]]:
    """Return records in the form of `to_json`, with keys and values as bytes, not hex."""
    return [_with_bytes(each) for each in values]


def _with_bytes(values: Values) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if not name.endswith("_decoded")}
    plain |= {name: raw(values, name) for name in ("key", "value") if name in values}
    if "headers" in values:
        plain["headers"] = [{**header, "value": raw(header, "value")} for header in structs(values, "headers")]
    return plain
