"""The layout of one version of one message: its fields in wire order.

A plan is a schema with the version resolved: it has no version ranges, and each length is known to be compact or not.
Reader, tracer and writer follow the same plan, so they can't disagree on the layout.
"""

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.protocol.schema.loader import alternatives, schema
from dissector.protocol.schema.model import Field, MessageSchema

SCALARS: Final = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Fixed-width types: their `struct` code (big-endian) and size in bytes."""
STRUCTS: Final = {name: struct.Struct(f">{code}") for name, (code, _) in SCALARS.items()}
"""The same as they are read."""


class ScalarPlan(NamedTuple):
    """A fixed-width value."""

    type: str

    @property
    def code(self) -> str:
        return SCALARS[self.type][0]

    @property
    def size(self) -> int:
        return SCALARS[self.type][1]


class VariablePlan(NamedTuple):
    """A string, bytes or records: a length, then the bytes. If compact, the length is an unsigned varint, plus 1."""

    type: str
    compact: bool
    nullable: bool


class ArrayPlan(NamedTuple):
    """A count, then that many elements. If compact, the count is an unsigned varint, plus 1."""

    element: "TypePlan"
    compact: bool
    nullable: bool


class StructPlan(NamedTuple):
    """Fields in wire order, followed by tagged fields in a flexible version (KIP-482).

    A nullable struct begins with one signed byte: -1 for null, else 1. If it is the value of a tagged field, it begins
    with an unsigned varint instead, 0 or 1.
    """

    name: str
    fields: tuple["FieldPlan", ...]
    tagged: tuple["FieldPlan", ...]
    flexible: bool
    nullable: bool


TypePlan = ScalarPlan | VariablePlan | ArrayPlan | StructPlan


def struct_of(plan: TypePlan) -> StructPlan | None:
    """Return the structure of a value or of its elements, or None."""
    if isinstance(plan, ArrayPlan):
        return struct_of(plan.element)
    return plan if isinstance(plan, StructPlan) else None


class FieldPlan(NamedTuple):
    """A named value. `tag` is None for an untagged field."""

    name: str
    schema: Field
    type: TypePlan
    tag: int | None = None


def least_size(plan: TypePlan) -> int:
    """Return the fewest bytes that a value can take. An array's count is checked against it."""
    if isinstance(plan, ScalarPlan):
        return plan.size
    if isinstance(plan, VariablePlan):
        return 1 if plan.compact else 2 if plan.type == "string" else 4
    if isinstance(plan, ArrayPlan):
        return 1 if plan.compact else 4
    return 1 if plan.nullable else sum(least_size(f.type) for f in plan.fields) + plan.flexible


def wire_type(plan: TypePlan) -> str:
    """Return Kafka's name of the wire type in this version: ``INT32``, ``COMPACT_NULLABLE_STRING``, ``ARRAY``."""
    if isinstance(plan, StructPlan):
        return "NULLABLE_STRUCT" if plan.nullable else "STRUCT"
    if isinstance(plan, ScalarPlan):
        return _name("BOOLEAN" if plan.type == "bool" else plan.type, compact=False, nullable=False)
    kind = "array" if isinstance(plan, ArrayPlan) else plan.type
    return _name(kind, compact=plan.compact, nullable=plan.nullable and kind in ("string", "bytes"))


@lru_cache(maxsize=64)
def _name(kind: str, *, compact: bool, nullable: bool) -> str:
    """One text for all nodes of a type."""
    return ("COMPACT_" if compact else "") + ("NULLABLE_" if nullable else "") + kind.upper()


def holds(plan: TypePlan, scalar: str) -> bool:
    """Return whether a value of this layout can contain a scalar of type `scalar`."""
    if isinstance(plan, ScalarPlan):
        return plan.type == scalar
    if isinstance(plan, ArrayPlan):
        return holds(plan.element, scalar)
    return isinstance(plan, StructPlan) and any(holds(f.type, scalar) for f in (*plan.fields, *plan.tagged))


class _Planner:
    """Builds the plan of one version of one message."""

    def __init__(self, schema: MessageSchema, version: int) -> None:
        self._version = version
        self._flexible = schema.flexible_versions.contains(version)

    def struct(self, name: str, fields: tuple[Field, ...], *, nullable: bool) -> StructPlan:
        here = [f for f in fields if f.versions.contains(self._version)]
        tagged = [f for f in here if f.tag is not None and f.tagged_versions.contains(self._version)]
        plain = [f for f in here if f not in tagged]
        return StructPlan(
            name,
            tuple(FieldPlan(f.snake_name, f, self.type_of(f, f.type)) for f in plain),
            tuple(FieldPlan(f.snake_name, f, self.type_of(f, f.type), f.tag) for f in tagged),
            self._flexible,
            nullable,
        )

    def type_of(self, field: Field, name: str) -> TypePlan:
        compact = self._flexible
        if field.flexible_versions is not None:
            compact = compact and field.flexible_versions.contains(self._version)
        nullable = field.nullable_versions.contains(self._version)
        if name.startswith("[]"):
            return ArrayPlan(self._element(field, name[2:], compact), compact, nullable)
        if name in SCALARS:
            return ScalarPlan(name)
        if name in ("string", "bytes", "records"):
            return VariablePlan(name, compact, nullable)
        return self.struct(name, field.fields, nullable=nullable)

    def _element(self, field: Field, name: str, compact: bool) -> TypePlan:
        if name in SCALARS:
            return ScalarPlan(name)
        if name in ("string", "bytes"):
            return VariablePlan(name, compact, nullable=False)
        return self.struct(name, field.fields, nullable=False)


def plan_of(schema: MessageSchema, version: int) -> StructPlan:
    """Return the layout of `version` of a message. The caller has checked that the version exists."""
    return _Planner(schema, version).struct(schema.name, schema.fields, nullable=False)


def plan(name: str, version: int, other: int = 0) -> StructPlan:
    """Return the layout of a message by name (``FetchRequest``); `other` > 0 selects one of its `alternatives`."""
    return _plan(name, version, other)


@lru_cache(maxsize=1024)
def _plan(name: str, version: int, other: int) -> StructPlan:
    """The same: a call with a default is another one to a cache than one without it."""
    return plan_of(alternatives(name, version)[other - 1] if other else schema(name, version), version)
