"""Protocol buffers in keys and values, read by descriptors with protobuf's library.

Names are those of the `.proto` file. Enums are names, 64-bit integers are integers, well-known timestamps and wrappers
are what they stand for. Fields without presence have their default where the wire has none, as a reader sees them.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dissector.core import limits
from dissector.core.text import counted
from dissector.protocol.wire import WireError, uvarint
from dissector.records.values.opened import PROTOBUF, NodeBudget, UnreadableError
from dissector.records.values.schema_reference import SchemaReference

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

_DEEPEST_INDEX: Final = 32
_WELL_KNOWN: Final = "google/protobuf/"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_TIMES: Final = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))


def message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of a message in its file, as Confluent writes them before the data, and where the data begin:
    how many, then each, as zigzag varints; a lone zero is the first message. Raises `UnreadableError`."""
    try:
        count, at = _zigzag(data, 0)
        if not count:
            return (0,), at
        if not 0 < count <= _DEEPEST_INDEX:
            raise UnreadableError(f"{count} indexes of a Protobuf message")
        found = []
        for _ in range(count):
            index, at = _zigzag(data, at)
            found.append(index)
    except (IndexError, WireError):
        raise UnreadableError("the data ends inside the indexes of a Protobuf message") from None
    return tuple(found), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    found, at = uvarint(data, at)
    return (found >> 1) ^ -(found & 1), at


def named_by_apicurio(data: bytes) -> tuple[str, int]:
    """Return the name of a message as Apicurio writes it before the data (`Ref`, its size in front), and where the data
    begin; an empty name where there is none."""
    try:
        size, start = uvarint(data, 0)
        if size >= 2 and data[start] == 0x0A and start + size <= len(data):
            length, at = uvarint(data, start + 1)
            if at + length == start + size:
                return data[at : at + length].decode(), start + size
    except (IndexError, WireError, UnicodeDecodeError):
        pass
    return "", 0


class ProtobufSchema:
    """The messages of one file, with those that it imports."""

    def __init__(self, files: Sequence["FileDescriptorProto"]) -> None:
        """The last file is the one; imports come before what needs them. Raises `UnreadableError`, and
        `ImportError` without protobuf."""
        from google.protobuf.descriptor_pool import DescriptorPool

        self._pool = DescriptorPool()
        added: set[str] = set()
        for file in files:
            for name in file.dependency:
                if name not in added:
                    self._add_import(name, added)
            self._add(file)
            added.add(file.name)
        self._file = self._pool.FindFileByName(files[-1].name)
        if not files[-1].message_type:
            raise UnreadableError(f"{files[-1].name} has no message")

    def _add(self, file: "FileDescriptorProto") -> None:
        try:
            self._pool.AddSerializedFile(file.SerializeToString())
        except Exception as error:  # TypeError or others, by the library's implementation
            words = str(error).strip().rpartition(": ")[2] or type(error).__name__
            raise UnreadableError(f"invalid Protobuf schema {file.name}: {words}"[:200]) from None

    def _add_import(self, name: str, added: set[str]) -> None:
        """Add a well-known file, or an empty one: many files import others for options alone."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        added.add(name)
        if name.startswith(_WELL_KNOWN) and name.endswith(".proto"):
            try:
                module = import_module(f"google.protobuf.{name[len(_WELL_KNOWN) : -len('.proto')]}_pb2")
            except ImportError:
                pass
            else:
                file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
                for each in file.dependency:
                    if each not in added:
                        self._add_import(each, added)
                self._add(file)
                return
        self._add(FileDescriptorProto(name=name))

    form = PROTOBUF

    def read(
        self, data: bytes, front: SchemaReference | None = None, bounds: limits.Limits = limits.DEFAULT
    ) -> tuple[str, object]:
        """Return the name of the message that data are, as a reference to the schema says, and its value. Raises
        `UnreadableError`."""
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        which, data = self._which(data, front)
        descriptor = self._descriptor(which)
        message = GetMessageClass(descriptor)()
        try:
            message.ParseFromString(data)
        except (DecodeError, UnicodeDecodeError, ValueError):
            raise UnreadableError(f"no {descriptor.full_name}: another schema wrote it") from None
        unknown = _unknown_fields(message)
        if unknown and not message.ListFields():
            raise UnreadableError(f"{counted(unknown, 'field')} that {descriptor.full_name} does not have")
        return descriptor.full_name, _value(message, NodeBudget(bounds), 0)

    def _which(self, data: bytes, front: SchemaReference | None) -> tuple[Sequence[int] | str, bytes]:
        """Return which message of its file data are, and the data behind what says so."""
        if front is None or not front.start:
            return (message_indexes(front.indexes)[0] if front is not None and front.indexes else (0,)), data
        name, start = named_by_apicurio(data)
        if name and (front.of_apicurio or self._has(name)):
            return name, data[start:]
        if front.of_apicurio:
            return (0,), data
        indexes, start = message_indexes(data)
        return indexes, data[start:]

    def _has(self, name: str) -> bool:
        try:
            self._pool.FindMessageTypeByName(name)
        except KeyError:
            return False
        return True

    def _descriptor(self, which: Sequence[int] | str) -> Any:
        if isinstance(which, str):
            try:
                return self._pool.FindMessageTypeByName(which)
            except KeyError:
                raise UnreadableError(f"the schema has no message {which[:80]!r}") from None
        level: Iterable[Any] = self._file.message_types_by_name.values()
        found = None
        for index in which:
            there = list(level)
            if not 0 <= index < len(there):
                raise UnreadableError(f"message {'.'.join(map(str, which))} of a schema that has fewer")
            found = there[index]
            level = (each for each in found.nested_types if not each.GetOptions().map_entry)
        return found


def _unknown_fields(message: Any) -> int:
    from google.protobuf.unknown_fields import UnknownFieldSet

    return len(UnknownFieldSet(message))


def _value(message: Any, budget: NodeBudget, depth: int) -> object:
    budget.take(depth)
    descriptor = message.DESCRIPTOR
    if descriptor.full_name in _WRAPPERS:
        return message.value
    if descriptor.full_name in _TIMES:
        try:
            return str(message.ToJsonString())
        except ValueError:  # a time that no calendar has
            return {"seconds": message.seconds, "nanos": message.nanos}
    found: dict[str, object] = {}
    for field in descriptor.fields:
        repeated = field.is_repeated
        if repeated and not len(getattr(message, field.name)):
            continue
        if not repeated and field.has_presence and not message.HasField(field.name):
            continue
        content = getattr(message, field.name)
        budget.take_name(field.name)
        if not repeated:
            found[field.name] = _single(field, content, budget, depth + 1)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_value = field.message_type.fields_by_name["value"]
            found[field.name] = {
                str(key): _single(of_value, content[key], budget, depth + 2) for key in content
            }  # fmt: skip
        else:
            found[field.name] = [_single(field, each, budget, depth + 2) for each in content]
    return found


def _single(field: Any, content: Any, budget: NodeBudget, depth: int) -> object:
    if field.message_type is not None:
        return _value(content, budget, depth)
    budget.take(depth)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(content)
        return budget.take_name(known.name) if known is not None else content
    return content
