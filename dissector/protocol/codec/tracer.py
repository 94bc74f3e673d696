"""Reads a message along its plan into a tree, one node per field.

At damaged bytes it raises `WireError` and the tree so far stays valid: `Tracer.at` is the offset of the field that
could not be read, and every node that was begun is in the tree.

Names in parentheses are parts of the encoding, not fields: ``(count)``, ``(present)``, ``(tag)``, ``(size)``.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from dissector.protocol.codec.plan import (
    SCALARS,
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    least_size,
    wire_type,
)
from dissector.protocol.codec.reader import text
from dissector.protocol.primitives import Primitive
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.schema.enums import ERROR_CODE, enum_of, name_of
from dissector.protocol.schema.errors import advice
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import UNPARSED, Node
from dissector.protocol.wire import WireError, uuid_text, uvarint

_STRUCTS = {name: struct.Struct(">" + code) for name, (code, _) in SCALARS.items()}


class Tracer:
    """Reads one frame from `at` on, and appends nodes to the parents that the caller passes."""

    def __init__(self, data: bytes, at: int, end: int, records: RecordTracer, source: int = 0) -> None:
        self._data = data
        self._end = end
        self._source = source
        self._records = records
        self._budget = records.budget
        self._message = ""
        self.at = at

    def prefix(self, root: Node) -> None:
        """Read the frame's size, which does not count itself."""
        self._leaf(root, "size", "INT32", self.at + 4, self._unpack("int32"))

    def message(self, plan: StructPlan, name: str, root: Node) -> None:
        """Read a header or a body."""
        self._message = plan.name
        self.struct(plan, self._child(root, name, "STRUCT"))

    def primitive(self, parent: Node, name: str, kind: Primitive) -> None:
        """Read a value outside of any message."""
        value, end = kind.read(self._data, self.at)
        self._leaf(parent, name, kind.name, end, value)

    def rest(self, parent: Node) -> None:
        """Add a leaf of the remaining bytes, if any. It is free of charge."""
        if self.at < self._end:
            node = Node("(rest)", parent.path_of("(rest)"), UNPARSED, self.at, self._end, source=self._source)
            node.value = self._data[self.at : self._end]
            parent.children.append(node)
            self.at = self._end

    def struct(self, plan: StructPlan, parent: Node) -> None:
        """Read a structure's fields into `parent`, tagged fields last."""
        try:
            for field in plan.fields:
                self.value(field.type, parent, field.name, field.schema)
            if plan.flexible:
                count = self._uvarint(parent, "(tagged fields)")
                for _ in range(count):
                    self._tagged(plan, parent)
        finally:
            parent.end = self.at

    @contextmanager
    def _inside(self, node: Node) -> Iterator[None]:
        """End the node where reading ended, also after an error."""
        try:
            yield
        finally:
            node.end = self.at

    def _child(self, parent: Node, name: str, kind: str, schema: Field | None = None) -> Node:
        self._budget.admit_nodes(1, self.at)
        node = Node(name, parent.path_of(name), kind, self.at, self.at, source=self._source, schema=schema)
        parent.children.append(node)
        return node

    def _leaf(self, parent: Node, name: str, kind: str, end: int, value: object) -> Node:
        if end > self._end:
            raise WireError(f"{name} runs past the end", self.at)
        node = self._child(parent, name, kind)
        node.end, node.value = end, value
        self.at = end
        return node

    def _uvarint(self, parent: Node, name: str, less: int = 0) -> int:
        value, end = uvarint(self._data, self.at)
        self._leaf(parent, name, "UNSIGNED_VARINT", end, value)
        return value - less

    def value(self, plan: TypePlan, parent: Node, name: str, schema: Field | None) -> None:
        """Read one value into `parent`."""
        match plan:
            case ScalarPlan():
                self._scalar(plan, parent, name, schema)
            case VariablePlan():
                self._variable(plan, parent, name, schema)
            case ArrayPlan():
                self._array(plan, parent, name, schema)
            case StructPlan():
                node = self._child(parent, name, wire_type(plan), schema)
                with self._inside(node):
                    if plan.nullable and not self._present(node):
                        node.note = "null"
                    else:
                        self.struct(plan, node)

    def _present(self, node: Node) -> bool:
        value = self._unpack("int8")
        self._leaf(node, "(present)", "INT8", self.at + 1, value)
        return isinstance(value, int) and value >= 0

    def _unpack(self, kind: str) -> object:
        reader = _STRUCTS[kind]
        if self.at + reader.size > self._end:
            raise WireError(f"ends inside {kind}", self.at)
        return reader.unpack_from(self._data, self.at)[0]

    def _scalar(self, plan: ScalarPlan, parent: Node, name: str, schema: Field | None) -> None:
        value = self._unpack(plan.type)
        if isinstance(value, bytes):
            value = uuid_text(value)
        node = self._leaf(parent, name, wire_type(plan), self.at + plan.size, value)
        node.schema = schema
        if schema is not None and isinstance(value, int):
            self._name(node, schema, value)

    def _name(self, node: Node, schema: Field, value: int) -> None:
        """Annotate a number with its name, if its field has an enum."""
        enum = enum_of(self._message, schema.snake_name)
        if enum is not None:
            node.note = name_of(enum, value)
            if enum == ERROR_CODE:
                node.advice = advice(value)

    def _length(self, plan: VariablePlan | ArrayPlan, code: str) -> tuple[int, int]:
        """Return a length or count, and the offset behind it."""
        if plan.compact:
            value, start = uvarint(self._data, self.at)
            return value - 1, start
        value_read = self._unpack(code)
        assert isinstance(value_read, int)
        return value_read, self.at + _STRUCTS[code].size

    def _variable(self, plan: VariablePlan, parent: Node, name: str, schema: Field | None) -> None:
        size, start = self._length(plan, "int16" if plan.type == "string" else "int32")
        if size < 0 and not plan.nullable:
            raise WireError(f"{name} is null where the schema has none", self.at)
        end = start + max(size, 0)
        if end > self._end:
            raise WireError(f"{name} runs past the end", self.at)
        if plan.type == "records" and size > 0:
            self._record_batches(plan, parent, name, schema, start, end)
            return
        raw = self._data[start:end]
        value = None if size < 0 else text(raw) if plan.type == "string" else raw
        self._leaf(parent, name, wire_type(plan), end, value).schema = schema

    def _record_batches(
        self, plan: VariablePlan, parent: Node, name: str, schema: Field | None, start: int, end: int
    ) -> None:
        node = self._child(parent, name, wire_type(plan), schema)
        with self._inside(node):
            kind = "UNSIGNED_VARINT" if plan.compact else "INT32"
            self._leaf(node, "(size)", kind, start, end - start + plan.compact)
            self._records.field(self._data, start, end, node)
            self.at = end

    def _array(self, plan: ArrayPlan, parent: Node, name: str, schema: Field | None) -> None:
        count, start = self._length(plan, "int32")
        if count < 0 and not plan.nullable:
            raise WireError(f"{name} is null where the schema has none", self.at)
        if count * max(1, least_size(plan.element)) > self._end - start:
            raise WireError(f"{name}: count {count:,} runs past the end", self.at)
        node = self._child(parent, name, wire_type(plan), schema)
        with self._inside(node):
            kind = "UNSIGNED_VARINT" if plan.compact else "INT32"
            self._leaf(node, "(count)", kind, start, count + plan.compact)
            if count < 0:
                node.note = "null"
            for number in range(count):
                self.value(plan.element, node, f"[{number}]", schema)

    def _tagged(self, plan: StructPlan, parent: Node) -> None:
        """Read one tagged field: its tag, its size, its value; an unknown tag's value as bytes."""
        tag, after = uvarint(self._data, self.at)
        size, start = uvarint(self._data, after)
        end = start + size
        if end > self._end:
            raise WireError(f"tagged field {tag} runs past the end", self.at)
        field = next((f for f in plan.tagged if f.tag == tag), None)
        name = field.name if field else f"(tag {tag})"
        node = self._child(parent, name, wire_type(field.type) if field else "TAGGED_FIELD")
        with self._inside(node):
            self._leaf(node, "(tag)", "UNSIGNED_VARINT", after, tag)
            self._leaf(node, "(size)", "UNSIGNED_VARINT", start, size)
            if field is None:
                self._leaf(node, "(data)", "BYTES", end, self._data[start:end])
            else:
                self._tagged_value(field, node, end)

    def _tagged_value(self, field: FieldPlan, node: Node, end: int) -> None:
        """Read the value into the node itself: its children become the node's, a scalar becomes ``(value)``."""
        node.schema = field.schema
        outer, self._end = self._end, end
        try:
            if isinstance(field.type, StructPlan):
                if field.type.nullable and not self._uvarint(node, "(present)"):
                    node.note = "null"
                else:
                    self.struct(field.type, node)
            else:
                self._tagged_leaf(field, node)
            if self.at != end:
                raise WireError(f"tagged field {field.name} has {end - self.at} bytes too many", self.at)
        finally:
            self._end = outer

    def _tagged_leaf(self, field: FieldPlan, node: Node) -> None:
        holder = Node("", node.path.removesuffix(f".{field.name}"), "", self.at, self.at)
        try:
            self.value(field.type, holder, field.name, field.schema)
        finally:
            for value in holder.children:
                if value.children:
                    node.children += value.children
                else:
                    value.name, value.path = "(value)", f"{node.path}.(value)"
                    node.children.append(value)
                node.value, node.note, node.advice = value.value, value.note, value.advice
