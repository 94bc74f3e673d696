"""Whether a stream of Arrow IPC has compressed batches, found without opening them.

A stream is messages: `ff ff ff ff`, the size of the metadata, the metadata, and a body whose size they state. The
metadata are a FlatBuffer, a table with the fields of `Message.fbs`: a record batch in it, or a dictionary with one,
states its compression. pyarrow opens bodies as they come, and has no way to refuse them:
https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
"""

import struct
from typing import Final

import pyarrow as pa

_CONTINUES: Final = 0xFFFFFFFF
_HEADER_KIND, _HEADER, _BODY_SIZE = 1, 2, 3
"""Fields of a message."""
_DICTIONARY, _RECORD_BATCH = 2, 3
"""Kinds of its header."""
_DATA: Final = 1
"""Field of a dictionary: its record batch."""
_COMPRESSION: Final = 3
"""Field of a record batch."""
_ALIGN: Final = 8


def is_compressed(data: memoryview) -> bool:
    """Return whether any batch of a stream is compressed. Raises `struct.error` for what is no stream, and
    `ArrowInvalid` for one that does not end where it says."""
    at = 0
    while at < len(data):
        mark, size = struct.unpack_from("<II", data, at)
        if mark != _CONTINUES:
            raise pa.ArrowInvalid("no message of Arrow")
        if not size:
            break
        message = data[at + 8 : at + 8 + size]
        if _states_compression(message):
            return True
        (body,) = _field(message, _table(message, 0), _BODY_SIZE, "<q") or (0,)
        if body < 0:
            raise pa.ArrowInvalid("a body of negative size")
        at += 8 + size + -(-body // _ALIGN) * _ALIGN
    return False


def _states_compression(message: memoryview) -> bool:
    root = _table(message, 0)
    (kind,) = _field(message, root, _HEADER_KIND, "<B") or (0,)
    batch = _child(message, root, _HEADER) if kind in (_DICTIONARY, _RECORD_BATCH) else None
    if batch is not None and kind == _DICTIONARY:
        batch = _child(message, batch, _DATA)
    return batch is not None and _place(message, batch, _COMPRESSION) is not None


def _table(data: memoryview, at: int) -> int:
    """Return where the table is that an offset leads to."""
    (offset,) = struct.unpack_from("<I", data, at)
    return at + int(offset)


def _place(data: memoryview, table: int, field: int) -> int | None:
    """Return where a field of a table is; None for one that it does not have."""
    (back,) = struct.unpack_from("<i", data, table)
    fields = table - int(back)
    (size,) = struct.unpack_from("<H", data, fields)
    if 4 + 2 * field + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * field)
    return table + int(offset) if offset else None


def _field(data: memoryview, table: int, field: int, form: str) -> tuple[int, ...] | None:
    at = _place(data, table, field)
    return None if at is None else struct.unpack_from(form, data, at)


def _child(data: memoryview, table: int, field: int) -> int | None:
    at = _place(data, table, field)
    return None if at is None else _table(data, at)
