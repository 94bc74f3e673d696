"""The wire layout of one version of a message, which a merge must not change.

Invariant: two schemas have equal layouts for a version exactly if their readers and writers use the same bytes and the
same names for it. Everything else (names of structs, `ignorable`, `entityType`, how a range or a default is spelled)
is not in a layout.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dissector.protocol.schema.model import Field, MessageSchema
from dissector.protocol.schema.table import FIXED_TYPES, VARIABLE_TYPES


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """A field in one version.

    `type` is a primitive type, ``struct``, or ``[]`` and one of these; `compact` means that its length is a varint.
    """

    name: str
    type: str
    nullable: bool
    tag: int | None
    compact: bool
    default: str | int | bool | None
    fields: tuple["FieldLayout", ...]

    def __str__(self) -> str:
        words = [self.type, "nullable" if self.nullable else "", "compact" if self.compact else ""]
        words += ["" if self.tag is None else f"tag {self.tag}", f"default {self.default!r}"]
        return ", ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class LayoutDifference:
    """One difference between two layouts of the same version. `path` is as in ``Topics.Partitions.LeaderEpoch``."""

    path: str
    ours: str
    theirs: str


def wire_layout(message: MessageSchema, version: int) -> tuple[FieldLayout, ...]:
    """Return the fields of a version in wire order; tagged ones are where the schema has them."""
    return _slots(message, message.fields, version)


def _slots(message: MessageSchema, fields: tuple[Field, ...], version: int) -> tuple[FieldLayout, ...]:
    flexible = message.flexible_versions.contains(version)

    def slot(field: Field) -> FieldLayout:
        element = field.element_type
        plain = element in FIXED_TYPES or element in VARIABLE_TYPES
        sized = field.is_array or not plain or element in VARIABLE_TYPES
        exception = field.flexible_versions
        nullable = field.nullable_versions.contains(version)
        return FieldLayout(
            name=field.name,
            type=("[]" if field.is_array else "") + (element if plain else "struct"),
            nullable=nullable,
            tag=field.tag if field.tagged_versions.contains(version) else None,
            compact=sized and flexible and (exception is None or exception.contains(version)),
            default=default_of(field),
            fields=_slots(message, field.fields, version),
        )

    return tuple(slot(field) for field in fields if field.versions.contains(version))


def default_of(field: Field) -> str | int | bool | None:
    """Return the default as a value: ``"0x10"`` is the same as 16, and a missing default as the type's zero."""
    default = field.default
    if default == "null":
        return None
    if field.is_array or field.type in ("bytes", "records", "uuid") or field.fields:
        return default or ""
    if field.type == "string":
        return default or ""
    if field.type == "bool":
        return default in (True, "true")
    if field.type == "float64":
        return str(float(default or 0))
    return int(default, 0) if isinstance(default, str) else int(default or 0)


def version_differences(ours: MessageSchema, theirs: MessageSchema, version: int) -> Iterator[LayoutDifference]:
    """Yield the differences between two schemas of a version."""
    # Compared apart from the fields: a flexible version has tags and another header even without fields.
    flexible = [str(m.flexible_versions.contains(version)) for m in (ours, theirs)]
    if flexible[0] != flexible[1]:
        yield LayoutDifference("(flexible)", flexible[0], flexible[1])
    yield from differences(wire_layout(ours, version), wire_layout(theirs, version))


def differences(
    ours: tuple[FieldLayout, ...], theirs: tuple[FieldLayout, ...], above: str = ""
) -> Iterator[LayoutDifference]:
    """Yield the differences between two layouts; none exactly if they are equal.

    A tagged field in `ours` only is not a difference: readers skip unknown tags and accept missing ones.
    """
    mine = {slot.name: slot for slot in ours}
    other = {slot.name: slot for slot in theirs}
    for name in [*mine, *(name for name in other if name not in mine)]:
        path = above + name
        here, there = mine.get(name), other.get(name)
        if there is None and here is not None and here.tag is not None:
            continue
        if here is None or there is None:
            yield LayoutDifference(path, str(here or "absent"), str(there or "absent"))
            continue
        if str(here) != str(there):
            yield LayoutDifference(path, str(here), str(there))
        yield from differences(here.fields, there.fields, f"{path}.")
    orders = [[name for name in one if name in mine and name in other] for one in (mine, other)]
    if orders[0] != orders[1]:
        yield LayoutDifference(f"{above}(order)", " ".join(orders[0]), " ".join(orders[1]))
