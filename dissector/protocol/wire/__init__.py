"""Primitive types of the wire. Each reader is `(data, at) -> (value, at)`."""

from dissector.protocol.wire.primitives import (
    LimitError,
    WireError,
    uuid_text,
    uvarint,
    uvarlong,
    varint,
    varlong,
)

__all__ = ["LimitError", "WireError", "uuid_text", "uvarint", "uvarlong", "varint", "varlong"]
