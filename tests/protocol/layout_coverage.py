"""What a layout can hold and what values do hold: by these a set of messages shows whether it leaves nothing out.

A place is a path without indices, and what stands there: a ``value``, a ``null``, or an ``unknown`` tagged field.
"""

from collections.abc import Iterator
from typing import Any

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan
from dissector.protocol.codec.reader import UNKNOWN_TAGS

Place = tuple[str, str]


def possible(plan: TypePlan, path: str = "", *, never_null: bool = False) -> Iterator[Place]:
    """Every place of a layout that Apache's writer can fill."""
    yield path, "value"
    if not isinstance(plan, ScalarPlan) and plan.nullable and not never_null:
        yield path, "null"
    if isinstance(plan, ArrayPlan):
        yield from possible(plan.element, f"{path}[]")
    elif isinstance(plan, StructPlan):
        if plan.flexible:
            yield path, "unknown"
        for field in (*plan.fields, *plan.tagged):
            yield from possible(field.type, f"{path}.{field.name}", never_null=_is_left_out(field))


def _is_left_out(field: FieldPlan) -> bool:
    """A tagged field whose default is null: Apache writes none that is at its default."""
    return field.tag is not None and field.schema.default == "null"


def filled(value: Any, path: str = "") -> Iterator[Place]:
    """Every place that a value fills."""
    yield path, "null" if value is None else "value"
    if isinstance(value, list):
        for each in value:
            yield from filled(each, f"{path}[]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from [(path, "unknown")] if name == UNKNOWN_TAGS else filled(each, f"{path}.{name}")
