"""Schemas by what names them: made of the texts of files or of a registry, kept once they are made. Where they are,
people say as a folder or as the address of a registry.

Invariants:
  * `find` never raises: a schema that can't be had or made is a finding's words, kept too;
  * what is kept is bounded by `limits.schemas`.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple, Protocol

import orjson

from dissector.core import limits
from dissector.core.extras import is_installed, missing
from dissector.core.text import os_reason
from dissector.records.values.avro import AvroSchema, parse_avro
from dissector.records.values.opened import UnreadableError
from dissector.records.values.opener import ValueOpener
from dissector.records.values.proto_text import parse_proto
from dissector.records.values.protobuf import ProtobufSchema
from dissector.records.values.schema_reference import SchemaKey

JSON_SCHEMA: Final = "JSON"
AVRO_SCHEMA, PROTOBUF_TEXT, DESCRIPTORS = "AVRO", "PROTOBUF", "DESCRIPTORS"
"""Types of schemas: of registries, and a serialized `FileDescriptorSet`."""
_NEEDED: Final = ("fastavro", "google.protobuf")


class SchemaText(NamedTuple):
    """A schema as it is written."""

    type: str
    content: bytes
    name: str = ""
    """Of its file, in imports of others."""
    imports: Sequence["SchemaText"] = ()
    """Those that it refers to, each before those that refer to it."""


class Schema(NamedTuple):
    """A schema, or why there is none. Without either, nobody knows it."""

    reader: AvroSchema | ProtobufSchema | None = None
    is_json: bool = False
    error: str = ""


class SchemaSource(Protocol):
    """Where schemas come from."""

    is_remote: bool
    """Whether they may take their time."""

    def text(self, key: SchemaKey) -> SchemaText | None:
        """Return a schema as it is written; None for one that is not there. Raises `UnreadableError`."""


UNKNOWN: Final = Schema()


class Schemas:
    """The schemas of one source."""

    def __init__(self, source: SchemaSource, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._source = source
        self.is_remote = source.is_remote
        """Whether a schema may take its time."""
        self._most = bounds.schemas
        self._kept: dict[SchemaKey, Schema] = {}
        self._lock = Lock()

    def find(self, key: SchemaKey) -> Schema:
        """Return a schema. A registry is asked, and may take its time."""
        found = self._kept.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._made(key)
                if len(self._kept) >= self._most:
                    self._kept.clear()
                self._kept[key] = found
        return found

    def known(self, key: SchemaKey) -> Schema | None:
        """Return a schema that was looked for before, at once; None for others."""
        return self._kept.get(key)

    def _made(self, key: SchemaKey) -> Schema:
        try:
            text = self._source.text(key)
            return UNKNOWN if text is None else make_schema(text)
        except UnreadableError as error:
            return Schema(error=str(error))
        except ImportError:
            return Schema(error=_missing())


def make_schema(text: SchemaText) -> Schema:
    """Return the schema of a text. Raises `UnreadableError`."""
    if len(text.content) > limits.DEFAULT.schema_bytes:
        raise UnreadableError(
            f"a schema of {len(text.content):,} bytes: at most {limits.DEFAULT.schema_bytes:,} are read"
        )
    if text.type == JSON_SCHEMA:
        return Schema(is_json=True)
    if text.type == AVRO_SCHEMA:
        return Schema(parse_avro([_json(each.content) for each in (*text.imports, text)]))
    if text.type == DESCRIPTORS:
        return Schema(_of_descriptors(text.content))
    texts = [*text.imports, text]
    files = [parse_proto(_utf8(each.content), each.name or "schema.proto") for each in texts]
    return Schema(ProtobufSchema(files))


def _json(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except ValueError:
        raise UnreadableError("invalid Avro schema: not JSON") from None


def _of_descriptors(content: bytes) -> ProtobufSchema:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = list(FileDescriptorSet.FromString(content).file)
        if not files or not all(file.name for file in files):
            files = [FileDescriptorProto.FromString(content)]
    except DecodeError:
        raise UnreadableError("not a set of Protobuf descriptors") from None
    return ProtobufSchema(files)


def _utf8(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UnreadableError("the schema is not UTF-8") from None


class SchemaLocationError(ValueError):
    """Schemas that can't be had. The message is one plain line."""


def opener_with(location: str, bounds: limits.Limits = limits.DEFAULT) -> ValueOpener:
    """Return what opens values by the schemas of a folder, or of a registry (``http://…``). Raises
    `SchemaLocationError`."""
    if not all(map(is_installed, _NEEDED)):
        raise SchemaLocationError(_missing())
    return ValueOpener(Schemas(_source(location, bounds), bounds), bounds)


def _source(location: str, bounds: limits.Limits) -> SchemaSource:
    if "://" in location:
        from dissector.records.values.schema_registry import SchemaRegistry

        try:
            return SchemaRegistry(location, bounds)
        except ValueError as error:
            raise SchemaLocationError(f"{location.rpartition('@')[2]}: {error}") from None
    from dissector.records.values.schema_folder import SchemaFolder

    try:
        folder = SchemaFolder(location, bounds)
    except OSError as error:
        raise SchemaLocationError(f"{location}: {os_reason(error)}") from None
    if not len(folder):
        raise SchemaLocationError(
            f"{location}: no schema in it (7.avsc, orders-value.proto, 7.desc, orders-value.json)"
        )
    return folder


def _missing() -> str:
    return missing("schemas need fastavro and protobuf", "schemas")
