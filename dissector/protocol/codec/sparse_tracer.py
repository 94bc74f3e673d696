"""Reads a message that is damaged, as `Tracer` does, with nodes only around the first field that can't be read.

A tree takes a hundred times as long as the values alone, and as much memory: a damaged message of a megabyte has some
hundred thousand fields, nearly all of which read well. What does is one node, whose value is that of the reader.

Invariant: values (`struct_values`), the place of the error and the path of the last node are those of `Tracer` (a
property test). It is not for messages with records, whose findings a whole tree has.
"""

from typing import Any, Final

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, StructPlan, TypePlan
from dissector.protocol.codec.reader import DECODE_ERRORS, ValueReader, reader_of
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.schema.model import Field
from dissector.protocol.tree import WHOLE, Node, last_node

_PARTS: Final = (ArrayPlan, StructPlan)


class SparseTracer(Tracer):
    """Of one frame."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._is_in_tag = False
        self._readers: dict[int, ValueReader] = {}
        """By the identity of their plans, which live as long as the process."""
        self._plans: dict[int, TypePlan] = {}
        """By the identity of nodes of the tree that have a whole value."""

    def value(self, plan: TypePlan, parent: Node, name: str, schema: Field | None) -> None:
        """Read one value into `parent`: as one node if all of it can be read."""
        if self._is_in_tag or not isinstance(plan, _PARTS):
            super().value(plan, parent, name, schema)
            return
        try:
            value, end = self._reader(plan)(self.data, self.at, self.end)
        except DECODE_ERRORS:
            end = -1
        if not self.at <= end <= self.end:
            super().value(plan, parent, name, schema)
            return
        node = self.leaf(parent, name, WHOLE, end, value)
        node.schema = schema
        self._plans[id(node)] = plan

    def last_path(self, root: Node) -> str:
        """The path of the last node that `Tracer` would have begun."""
        node, parent = root, root
        while node.children:
            node, parent = node.children[-1], node
        plan = self._plans.get(id(node))
        if plan is None:
            return node.path
        holder = Node("", parent.path, "", node.start, node.start)
        tracer = Tracer(self.data, node.start, node.end, self._records, node.source)
        tracer.value(plan, holder, node.name, node.schema)
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
