"""Encodes a message of magic 0 or 1, or a wrapper, from the object that `to_json` makes of it."""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from dissector.protocol.records.compression import CODEC_MASK, CODECS, DecompressionError
from dissector.protocol.records.input_values import Values, integer, raw, structs, with_bytes
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.to_json import frame_budget, message_objects
from dissector.protocol.wire import EncodeError, WireError

_CRC_SIZE: Final = 4


def message_bytes(value: Values) -> bytes:
    """Return the bytes of a message. Raises `EncodeError`."""
    magic, attributes = integer(value, "magic", 1), integer(value, "attributes", 0)
    codec = attributes & CODEC_MASK
    content = _wrapped(value, magic, codec) if codec else raw(value, "value")
    try:
        body = struct.pack(">bb", magic, attributes)
        if magic:
            body += struct.pack(">q", integer(value, "timestamp", -1))
        body += _blob(raw(value, "key")) + _blob(content)
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


def _blob(content: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if content is None else struct.pack(">i", len(content)) + content
