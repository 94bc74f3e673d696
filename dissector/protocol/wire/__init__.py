"""Primitive types of the wire. Each reader is `(data, at) -> (value, at)`."""

from dissector.protocol.wire.primitives import (
    TWO_BYTES,
    LimitError,
    WireError,
    uuid_text,
    uvarint,
    uvarlong,
    varint,
    varlong,
)

__all__ = ["TWO_BYTES", "LimitError", "WireError", "uuid_text", "uvarint", "uvarlong", "varint", "varlong"]
