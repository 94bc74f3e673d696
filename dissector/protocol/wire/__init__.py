"""Primitive types of the wire, each `(data, at) -> (value, at)`."""

from dissector.protocol.wire.primitives import WireError, uuid_text, uvarint, uvarlong, varint, varlong

__all__ = ["WireError", "uuid_text", "uvarint", "uvarlong", "varint", "varlong"]
