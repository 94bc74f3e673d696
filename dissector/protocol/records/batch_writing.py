"""Encodes a record batch of magic 2 from the object that `to_json` makes of it."""

import struct
from typing import Final

import google_crc32c

from dissector.protocol.records.batch import CRC_FROM, Batch
from dissector.protocol.records.compression import CODEC_MASK, CODECS, DecompressionError
from dissector.protocol.records.entries import LOG_OVERHEAD
from dissector.protocol.records.input_values import Values, integer, raw, structs, with_bytes
from dissector.protocol.records.to_json import frame_budget, record_objects
from dissector.protocol.wire import EncodeError, WireError, varint_bytes, varlong_bytes

_START: Final = struct.Struct(">qiibI")
_HEAD: Final = struct.Struct(">hiqqqhii")


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
        _blob(record, "key"), _blob(record, "value"), varint_bytes(len(headers)),
    ]  # fmt: skip
    for header in headers:
        key = str(header.get("key", "")).encode("utf-8", "surrogateescape")
        parts += (varint_bytes(len(key)), key, _blob(header, "value"))
    return b"".join(parts)


def _blob(values: Values, name: str) -> bytes:
    content = raw(values, name)
    return varint_bytes(-1) if content is None else varint_bytes(len(content)) + content
