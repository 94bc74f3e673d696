"""Reads a message along its plan into a tree, one node per field.

At damaged bytes it raises `WireError` and the tree so far stays valid: `Tracer.at` is the offset of the field that
could not be read, and every node that was begun is in the tree.

A tree takes a hundred times as long as the values alone, and as much memory: a damaged message of a megabyte has some
hundred thousand fields, nearly all of which read well. In the tree of `SparseTracer` elements of an array that read
well are one node, but for the first one: its value is that of the reader. Its values (`struct_values`), the place of
the error and the path of the last node are those of `Tracer` (a property test). It is not for messages with records,
whose findings a whole tree has.

Names in parentheses are parts of the encoding, not fields: ``(count)``, ``(present)``, ``(tag)``, ``(size)``.
"""

from typing import Any, Final, NamedTuple

from dissector.protocol.codec.plan import (
    STRUCTS,
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    least_size,
    wire_type,
)
from dissector.protocol.codec.reader import DECODE_ERRORS, ValueReader, reader_of, text
from dissector.protocol.primitives import Primitive
from dissector.protocol.records.span_cursor import SpanCursor
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.schema.enums import ERROR_CODE, enum_of, name_of
from dissector.protocol.schema.errors import advice
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import WHOLE, Node, last_node
from dissector.protocol.wire import WireError, uuid_text, uvarint

_SCALAR_TYPES: Final = {name: wire_type(ScalarPlan(name)) for name in STRUCTS}


class Tracer(SpanCursor):
    """Reads one frame from `at` on, and appends nodes to the parents that the caller passes. A budget is charged for
    each. Of a frame whose end is not to be read, `frame_end` says how much an array may hold."""

    def __init__(
        self, data: bytes, at: int, end: int, records: RecordTracer, source: int = 0, frame_end: int = 0
    ) -> None:
        super().__init__(data, at, end, source)
        self._frame_end = frame_end
        self._records = records
        self._budget = records.budget
        self._message = ""

    def begin(self, parent: Node, name: str, kind: str, schema: Field | None = None) -> Node:
        at = self.at
        self._budget.admit_nodes(1, at)
        node = Node(name, parent.path_of(name), kind, at, at, None, "", self.source, schema)
        parent.add(node)
        return node

    def last_path(self, root: Node) -> str:
        """The path of the last node that was begun."""
        return last_node(root).path

    def prefix(self, root: Node) -> None:
        """Read the frame's size, which does not count itself."""
        self.leaf(root, "size", "INT32", self.at + 4, self._unpack("int32"))

    def message(self, plan: StructPlan, name: str, root: Node) -> None:
        """Read a header or a body."""
        self._message = plan.name
        self.struct(plan, self.begin(root, name, "STRUCT"))

    def primitive(self, parent: Node, name: str, kind: Primitive) -> None:
        """Read a value outside of any message."""
        value, end = kind.read(self.data, self.at)
        self.leaf(parent, name, kind.name, end, value)

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

    def _uvarint(self, parent: Node, name: str) -> int:
        value, end = uvarint(self.data, self.at)
        self.leaf(parent, name, "UNSIGNED_VARINT", end, value)
        return value

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
                node = self.begin(parent, name, wire_type(plan), schema)
                with self.within(node, self.end):
                    if plan.nullable and not self._present(node):
                        node.note = "null"
                    else:
                        self.struct(plan, node)

    def _present(self, node: Node) -> bool:
        value = self._unpack("int8")
        self.leaf(node, "(present)", "INT8", self.at + 1, value)
        return isinstance(value, int) and value >= 0

    def _unpack(self, kind: str) -> object:
        reader = STRUCTS[kind]
        if self.at + reader.size > self.end:
            raise WireError(f"ends inside {kind}", self.at)
        return reader.unpack_from(self.data, self.at)[0]

    def _scalar(self, plan: ScalarPlan, parent: Node, name: str, schema: Field | None) -> None:
        value = self._unpack(plan.type)
        if isinstance(value, bytes):
            value = uuid_text(value)
        node = self.leaf(parent, name, _SCALAR_TYPES[plan.type], self.at + plan.size, value)
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
            value, start = uvarint(self.data, self.at)
            return value - 1, start
        value_read = self._unpack(code)
        assert isinstance(value_read, int)
        return value_read, self.at + STRUCTS[code].size

    def _variable(self, plan: VariablePlan, parent: Node, name: str, schema: Field | None) -> None:
        size, start = self._length(plan, "int16" if plan.type == "string" else "int32")
        if size < 0 and not plan.nullable:
            raise WireError(f"{name}: length {size:,} where null is not allowed", self.at)
        end = start + max(size, 0)
        if end > self.end:
            raise WireError(f"{name}: length {size:,} runs past the end", self.at)
        if plan.type == "records" and size > 0:
            self._record_batches(plan, parent, name, schema, start, end)
            return
        raw = self.data[start:end]
        value = None if size < 0 else text(raw) if plan.type == "string" else raw
        self.leaf(parent, name, wire_type(plan), end, value).schema = schema

    def _record_batches(
        self, plan: VariablePlan, parent: Node, name: str, schema: Field | None, start: int, end: int
    ) -> None:
        node = self.begin(parent, name, wire_type(plan), schema)
        with self.within(node, self.end):
            self._length_leaf(plan, node, "(size)", start, end - start)
            self._records.field(self.data, start, end, node)
            self.at = end

    def _length_leaf(self, plan: VariablePlan | ArrayPlan, node: Node, name: str, end: int, length: int) -> None:
        """Add what says how many there are; a compact one is one more on the wire (KIP-482)."""
        if not plan.compact:
            self.leaf(node, name, "INT32", end, length)
            return
        leaf = self.leaf(node, name, "UNSIGNED_VARINT", end, None if length < 0 else length)
        leaf.note = f"encoded {length + 1:,}"

    def _array(self, plan: ArrayPlan, parent: Node, name: str, schema: Field | None) -> None:
        count, start = self._length(plan, "int32")
        if count < 0 and not plan.nullable:
            raise WireError(f"{name}: count {count:,} where null is not allowed", self.at)
        if count * max(1, least_size(plan.element)) > max(self.end, self._frame_end) - start:
            raise WireError(f"{name}: count {count:,} runs past the end", self.at)
        node = self.begin(parent, name, wire_type(plan), schema)
        with self.within(node, self.end):
            self._length_leaf(plan, node, "(count)", start, count)
            if count < 0:
                node.note = "null"
            self._elements(plan.element, node, schema, count)

    def _elements(self, plan: TypePlan, node: Node, schema: Field | None, count: int) -> None:
        for number in range(count):
            self.value(plan, node, f"[{number}]", schema)

    def _tagged(self, plan: StructPlan, parent: Node) -> None:
        """Read one tagged field: its tag, its size, its value; an unknown tag's value as bytes."""
        tag, after = uvarint(self.data, self.at)
        size, start = uvarint(self.data, after)
        end = start + size
        if end > self.end:
            raise WireError(f"tagged field {tag:,}: length {size:,} runs past the end", self.at)
        field = next((f for f in plan.tagged if f.tag == tag), None)
        name = field.name if field else f"(tag {tag})"
        node = self.begin(parent, name, wire_type(field.type) if field else "TAGGED_FIELD")
        with self.within(node, self.end):
            self.leaf(node, "(tag)", "UNSIGNED_VARINT", after, tag)
            self.leaf(node, "(size)", "UNSIGNED_VARINT", start, size)
            if field is None:
                self.leaf(node, "(data)", "BYTES", end, self.data[start:end])
            else:
                self._tagged_value(field, node, end)

    def _tagged_value(self, field: FieldPlan, node: Node, end: int) -> None:
        """Read the value into the node itself: its children become the node's, a scalar becomes ``(value)``."""
        node.schema = field.schema
        with self.within(node, end):
            if isinstance(field.type, StructPlan):
                if field.type.nullable and not self._uvarint(node, "(present)"):
                    node.note = "null"
                else:
                    self.struct(field.type, node)
            else:
                self._tagged_leaf(field, node)
            if self.at != end:
                raise WireError(f"tagged field {field.name} has {end - self.at} bytes too many", self.at)

    def _tagged_leaf(self, field: FieldPlan, node: Node) -> None:
        holder = Node("", node.path.removesuffix(f".{field.name}"), "", self.at, self.at)
        try:
            self.value(field.type, holder, field.name, field.schema)
        finally:
            for value in holder.children:
                if value.children:
                    node.add(*value.children)
                else:
                    value.name, value.path = "(value)", f"{node.path}.(value)"
                    node.add(value)
                node.value, node.note, node.advice = value.value, value.note, value.advice


class _Element(NamedTuple):
    """An element of an array that can be read."""

    plan: TypePlan
    name: str
    start: int


class SparseTracer(Tracer):
    """Of one frame."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._is_in_tag = False
        self._readers: dict[int, ValueReader] = {}
        """By the identity of their plans, which live as long as the process."""
        self._last_of: dict[int, _Element] = {}
        """By the identity of the nodes of the tree that have whole elements."""

    def _elements(self, plan: TypePlan, node: Node, schema: Field | None, count: int) -> None:
        if self._is_in_tag:
            super()._elements(plan, node, schema, count)
            return
        number = 0
        while number < count:
            name, start = f"[{number}]", self.at
            values, last = self._whole(plan, count - number) if number else ([], start)
            if values:
                end, self.at = self.at, start
                run = self.leaf(node, name, WHOLE, end, values)
                run.schema = schema
                number += len(values)
                self._last_of[id(run)] = _Element(plan, f"[{number - 1}]", last)
            else:
                self.value(plan, node, name, schema)
                number += 1

    def _whole(self, plan: TypePlan, most: int) -> tuple[list[object], int]:
        """Read values that follow each other, up to one that can't be read, and return them, and where the last one
        begins."""
        read, last = self._reader(plan), self.at
        values: list[object] = []
        while len(values) < most:
            try:
                value, end = read(self.data, self.at, self.end)
            except DECODE_ERRORS:
                break
            if not self.at <= end <= self.end:
                break
            values.append(value)
            last, self.at = self.at, end
        return values, last

    def last_path(self, root: Node) -> str:
        """The path of the last node that `Tracer` would have begun."""
        node, parent = root, root
        while node.children:
            node, parent = node.children[-1], node
        last = self._last_of.get(id(node))
        if last is None:
            return node.path
        holder = Node("", parent.path, "", last.start, last.start)
        tracer = Tracer(self.data, last.start, node.end, self._records, node.source)
        tracer.value(last.plan, holder, last.name, node.schema)
        return last_node(holder).path

    def _tagged_value(self, field: FieldPlan, node: Node, end: int) -> None:
        was, self._is_in_tag = self._is_in_tag, True  # the nodes of a value become those of its tag
        try:
            super()._tagged_value(field, node, end)
        finally:
            self._is_in_tag = was

    def _reader(self, plan: TypePlan) -> ValueReader:
        found = self._readers.get(id(plan))
        if found is None:
            found = self._readers[id(plan)] = reader_of(plan)
        return found
