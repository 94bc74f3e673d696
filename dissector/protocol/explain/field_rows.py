"""A layout as rows of a table: one per field, in wire order; fields of elements and structures are one level deeper."""

from collections.abc import Iterator
from typing import NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, struct_of, wire_type
from dissector.protocol.codec.writer import default
from dissector.protocol.schema.model import snake_name


class FieldRow(NamedTuple):
    """A field of one version. `default` is empty if the schema has none and the field is always on the wire."""

    depth: int
    name: str
    type: str
    nullable: bool
    tag: int | None
    default: str
    versions: str
    """All versions that have the field."""
    aliases: tuple[str, ...]


def field_rows(plan: StructPlan, depth: int = 0) -> Iterator[FieldRow]:
    """Yield the fields of a structure, tagged ones last."""
    for field in (*plan.fields, *plan.tagged):
        yield _line(field, depth)
        inner = struct_of(field.type)
        if inner is not None:
            yield from field_rows(inner, depth + 1)


def type_words(plan: TypePlan) -> str:
    """Return the wire type with its element type: ``COMPACT_ARRAY of FetchTopic``."""
    if isinstance(plan, ArrayPlan):
        element = plan.element.name if isinstance(plan.element, StructPlan) else wire_type(plan.element)
        return f"{wire_type(plan)} of {element}"
    return f"{wire_type(plan)} {plan.name}" if isinstance(plan, StructPlan) else wire_type(plan)


def _line(field: FieldPlan, depth: int) -> FieldRow:
    schema = field.schema
    nullable = not isinstance(field.type, ScalarPlan) and field.type.nullable
    versions = str(schema.versions)
    aliases = tuple(snake_name(alias) for alias in schema.aliases)
    return FieldRow(
        depth, field.name, type_words(field.type), nullable, field.tag, default_words(field), versions, aliases
    )


def default_words(field: FieldPlan) -> str:
    """Return the field's default as text; empty if the schema has none and the field is always on the wire."""
    if field.schema.default is None and field.tag is None:
        return ""
    value = default(field)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return f'"{value}"'
    return "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else str(value)
