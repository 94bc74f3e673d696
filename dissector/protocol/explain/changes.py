"""Changes between two layouts: of two versions of a message, or of one version in two releases.

Only changes on the wire or in the values count. That all lengths become varints in a flexible version is one change of
the message, and not one per field.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, plan, struct_of
from dissector.protocol.explain.field_rows import default_words, type_words
from dissector.protocol.explain.releases import released_in
from dissector.protocol.schema.model import MessageSchema


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `path` is the field's, from the message's root; empty for the message as a whole."""

    path: str
    words: str

    def __str__(self) -> str:
        return f"{self.path}: {self.words}" if self.path else self.words


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """The changes of one version of a message since the version before it."""

    version: int
    marks: tuple[str, ...]
    """``deprecated``, ``unstable``."""
    releases: str
    changes: tuple[Change, ...]


def history(message: MessageSchema) -> Iterator[VersionChanges]:
    """Yield the changes of every version of a message, oldest first."""
    before: StructPlan | None = None
    for version in message.valid_versions:
        now = plan(message.name, version)
        marks = [
            word
            for word, versions in (
                ("deprecated", message.deprecated_versions), ("unstable", message.unstable_versions)
            ) if versions.contains(version)
        ]  # fmt: skip
        found = () if before is None else tuple(changes(before, now))
        yield VersionChanges(version, tuple(marks), released_in(message, version), found)
        before = now


def changes(older: StructPlan, newer: StructPlan) -> Iterator[Change]:
    """Yield all changes, those of the whole first, then by field in wire order."""
    if older.flexible != newer.flexible:
        yield Change("", "flexible: compact lengths and tagged fields" if newer.flexible else "no longer flexible")
    yield from _fields(older, newer, "")


def _fields(older: StructPlan, newer: StructPlan, above: str) -> Iterator[Change]:
    was = {field.name: field for field in (*older.fields, *older.tagged)}
    now = {field.name: field for field in (*newer.fields, *newer.tagged)}
    for name, field in now.items():
        if name in was:
            yield from _field_changes(was[name], field, above + name, same_form=older.flexible == newer.flexible)
        else:
            yield Change(above + name, f"added, {_description(field)}")
    for name, field in was.items():
        if name not in now:
            yield Change(above + name, f"removed (was {_description(field)})")
    orders = [[f.name for f in plan.fields if f.name in was and f.name in now] for plan in (older, newer)]
    if sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]:
        yield Change(above.removesuffix("."), f"order: {', '.join(orders[0])} became {', '.join(orders[1])}")


def _field_changes(was: FieldPlan, now: FieldPlan, path: str, *, same_form: bool) -> Iterator[Change]:
    """Yield the changes of a field that both layouts have."""
    old, new = _kind(was.type), _kind(now.type)
    if old != new:
        yield Change(path, f"{old} became {new}")
        return
    if _nullable(was.type) != _nullable(now.type):
        yield Change(path, "may be null" if _nullable(now.type) else "may no longer be null")
    if was.tag != now.tag:
        yield Change(path, "no longer tagged" if now.tag is None else f"became tagged, tag {now.tag}")
    if same_form and _compact(was.type) != _compact(now.type):
        yield Change(path, f"{type_words(was.type)} became {type_words(now.type)}")
    if default_words(was) != default_words(now) and was.tag == now.tag:
        yield Change(path, f"default {default_words(was) or 'none'} became {default_words(now) or 'none'}")
    before, after = struct_of(was.type), struct_of(now.type)
    if before is not None and after is not None:
        yield from _fields(before, after, f"{path}.")


def _description(field: FieldPlan) -> str:
    words = [type_words(field.type)]
    words += ["may be null"] if _nullable(field.type) and "NULLABLE" not in words[0] else []
    words += [] if field.tag is None else [f"tag {field.tag}"]
    default = default_words(field)
    return ", ".join([*words, f"default {default}"] if default else words)


def _nullable(plan: TypePlan) -> bool:
    return not isinstance(plan, ScalarPlan) and plan.nullable


def _compact(plan: TypePlan) -> bool:
    return not isinstance(plan, ScalarPlan | StructPlan) and plan.compact


def _kind(plan: TypePlan) -> str:
    """Return the type without its form: whether it is compact or nullable, and the name of a structure."""
    if isinstance(plan, ArrayPlan):
        return f"ARRAY of {_kind(plan.element)}"
    if isinstance(plan, StructPlan):
        return "STRUCT"
    return type_words(plan if isinstance(plan, ScalarPlan) else plan._replace(compact=False, nullable=False))
