"""Encodes a `records` object (`to_json`): batches, messages, and bytes that are neither.

Sizes, counts and checksums are computed; a missing field has the value that a producer would send. The original
compressed section is used again if it has the records of the object; else they are compressed again. A checksum that
was marked as wrong stays wrong.
"""

from collections.abc import Mapping

from dissector.protocol.records.batch_writing import batch_bytes
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.records.input_values import Values, raw, structs
from dissector.protocol.records.legacy_writing import message_bytes
from dissector.protocol.wire import EncodeError


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
