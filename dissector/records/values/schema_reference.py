"""The schema that a key or a value names: in its first bytes, or in a header of its record.

Confluent's wire format: a zero byte, the schema's id as INT32, of Protobuf the indexes of the message in its file, then
the data. Since Confluent Platform 8.1 a header may have the id in place of the first bytes: magic 1 and a GUID.

Apicurio's: a zero byte and the global id as INT64, or, by default since version 3, the content id as INT32; or headers
with these ids as INT64. Confluent's ids begin with 1, so four zero bytes are the upper half of an INT64.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from dissector.protocol.records.batch import RecordHeader

MAGIC: Final = 0
_SHORT, _LONG = 5, 9
"""Bytes of magic and id."""
_ID: Final = struct.Struct(">I")
_LONG_ID: Final = struct.Struct(">Q")
ID, GLOBAL_ID, CONTENT_ID, GUID, SUBJECT = "id", "globalId", "contentId", "guid", "subject"
"""What a schema is named by. An id of Confluent's may be a content id of Apicurio's: the bytes are the same."""


class SchemaKey(NamedTuple):
    """What names a schema."""

    kind: str
    name: str

    @property
    def words(self) -> str:
        """As people read it: ``schema 7``, ``schema orders-value``."""
        return f"schema {self.name}"


class SchemaReference(NamedTuple):
    """A schema that is named, and where the data begin."""

    key: SchemaKey
    start: int = 0
    """0 for one that a header names."""
    of_apicurio: bool = False
    indexes: bytes = b""
    """Of a Protobuf message in its file, where a header has them."""


def in_headers(headers: Sequence[RecordHeader], *, is_key: bool) -> SchemaReference | None:
    """Return the schema that headers name for the key or the value of a record."""
    part = "key" if is_key else "value"
    for name, content in headers:
        if content is None or not (name.startswith("apicurio.") or name.endswith("_schema_id")):
            continue
        if name == f"__{part}_schema_id":
            if content[:1] == b"\x01" and len(content) >= 17:
                return SchemaReference(SchemaKey(GUID, str(UUID(bytes=content[1:17]))), indexes=content[17:])
            if content[:1] == b"\x00" and len(content) >= _SHORT:
                key = SchemaKey(ID, str(_ID.unpack_from(content, 1)[0]))
                return SchemaReference(key, indexes=content[_SHORT:])
        for kind in (GLOBAL_ID, CONTENT_ID):
            if name == f"apicurio.{part}.{kind}" and len(content) == _LONG_ID.size:
                return SchemaReference(SchemaKey(kind, str(_LONG_ID.unpack(content)[0])), of_apicurio=True)
    return None


def in_front(data: bytes) -> SchemaReference | None:
    """Return the schema that the first bytes may name: a zero byte begins other formats, too."""
    if len(data) < _SHORT or data[0] != MAGIC:
        return None
    (number,) = _ID.unpack_from(data, 1)
    if number:
        return SchemaReference(SchemaKey(ID, str(number)), _SHORT) if number < 1 << 31 else None
    if len(data) < _LONG:
        return None
    (long,) = _LONG_ID.unpack_from(data, 1)
    return SchemaReference(SchemaKey(GLOBAL_ID, str(long)), _LONG, of_apicurio=True) if long else None
