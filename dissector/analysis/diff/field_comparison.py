"""Compare the fields of one matching key: which values each side has, and why they differ.

Sets of values are compared, not the n-th value with the n-th: more iterations of a loop are no difference, and a
different setting is one difference, however often it was sent. A field with more than `MAX_COMPARED_VALUES` values on
both sides varies on both and is not compared.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.formatting import format_path, format_value, format_values
from dissector.analysis.diff.message_leaves import (
    EMPTY,
    NO_SESSION,
    NOT_EMPTY,
    WITHOUT_SESSION,
    ElementLabel,
    LeafPath,
    default_of,
    path_without_labels,
)
from dissector.analysis.diff.moved_fields import canonical_path
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.result import DiffReason
from dissector.analysis.diff.side_profile import KeyProfile
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import Field

MAX_COMPARED_VALUES: Final = 8
MAX_TEXT: Final = 60
ASSIGNED: Final = {
    "SyncGroupRequest": "assignments.assignment.assigned_partitions",
    "SyncGroupResponse": "assignment.assigned_partitions",
}
"""What a leader assigns: nothing, where a topic is not known yet. When it gets to be known is up to the run."""
EMPTY_VALUES: Final[frozenset[ComparedValue]] = frozenset((None, "", EMPTY))
"""What a broker answers in place of nothing: which of them is up to the version."""


class FieldOnSide(NamedTuple):
    """A field on one side."""

    values: Counter[ComparedValue]
    own: LeafPath
    """Where the side itself has it."""
    row: int


class KeyDifference(NamedTuple):
    """A difference of one key. `path` has labels."""

    part: str
    path: LeafPath
    reason: DiffReason
    a: str
    b: str
    count_a: int
    count_b: int
    words: str
    row_a: int | None
    row_b: int | None


@dataclass(frozen=True, slots=True)
class _SideFields:
    """One side's fields of a part, as the comparison has them."""

    seen: dict[LeafPath, FieldOnSide]
    prefixes: frozenset[LeafPath]
    versions: frozenset[int]


def compare_fields(api: str, a: KeyProfile, b: KeyProfile, names: NameMatching) -> Iterator[KeyDifference]:
    """The differences between what two sides have under one key."""
    for part in ("request", "response"):
        body = f"{api}{part.capitalize()}"
        sides = [_side_fields(body, part, facts, names, side) for side, facts in enumerate((a, b))]
        if all(side.seen for side in sides):
            yield from _merge_array_elements(
                _merge_replaced_fields(_PartComparison(part, body, sides[0], sides[1]).found())
            )


def _side_fields(body: str, part: str, facts: KeyProfile, names: NameMatching, side: int) -> _SideFields:
    seen: dict[LeafPath, FieldOnSide] = {}
    for (own_part, own), values in facts.fields.items():
        place = canonical_path(body, own) if own_part == part else None
        if place is not None:
            path = names.path(side, place)
            found = seen.setdefault(path, FieldOnSide(Counter(), own, facts.first[own_part, own]))
            for value, count in values.items():
                found.values[names.value(side, value)] += count
    prefixes = frozenset(path[:n] for path in seen for n in range(len(path) + 1))
    return _SideFields(seen, prefixes, frozenset(facts.versions))


class _PartComparison:
    """Requests or responses of one key."""

    def __init__(self, part: str, body: str, a: _SideFields, b: _SideFields) -> None:
        self._part = part
        self._body = body
        self._sides = (a, b)
        self._told: set[LeafPath] = set()

    def found(self) -> list[KeyDifference]:
        a, b = self._sides
        out: list[KeyDifference] = []
        for path in dict.fromkeys((*a.seen, *b.seen)):
            if path in a.seen and path in b.seen:
                out += self._both(path, a.seen[path], b.seen[path])
            elif path in a.seen:
                out += self._one(path, 0)
            else:
                out += self._one(path, 1)
        return out

    def _both(self, path: LeafPath, a: FieldOnSide, b: FieldOnSide) -> Iterator[KeyDifference]:
        ours, theirs = frozenset(a.values), frozenset(b.values)
        if ours == theirs or (len(ours) > MAX_COMPARED_VALUES and len(theirs) > MAX_COMPARED_VALUES):
            return
        if NOT_EMPTY in ours & theirs and path_without_labels(path) == ASSIGNED.get(self._body):
            return
        reason, words = DiffReason.VALUE, ""
        field = field_at(self._body, a.own)
        default = default_of(field) if field is not None else None
        if path[-1] == "compression":
            reason = DiffReason.CODEC
        elif field is not None and self._part == "response" and ours ^ theirs <= EMPTY_VALUES and self._nulls(field):
            reason, words = DiffReason.VERSION, f"null is there from v{field.nullable_versions.low} on"
        elif default is not None and (ours == {default}) != (theirs == {default}):
            reason = DiffReason.DEFAULT
            words = f"{'{a}' if ours == {default} else '{b}'} leaves the schema's default"
        yield self._entry(path, reason, self._said(path, a), self._said(path, b), words, a, b)

    def _nulls(self, field: Field) -> bool:
        """Whether one side's versions can say null of a field, and the other's can't."""
        a, b = (any(map(field.nullable_versions.contains, side.versions)) for side in self._sides)
        return a != b

    def _said(self, path: LeafPath, seen: FieldOnSide) -> str:
        return format_values(self._body, seen.values, path_without_labels(path))

    def _one(self, path: LeafPath, side: int) -> Iterator[KeyDifference]:
        """What one side alone has: told once, at the first step of the path that the other lacks."""
        mine, other = self._sides[side], self._sides[1 - side]
        # A structure that is null here and has fields there: the path ends on one side and goes on on the other.
        at = next((n for n in range(1, len(path) + 1) if path[:n] not in other.prefixes), len(path))
        start = path[:at]
        if start in self._told:
            return
        above = next((other.seen[path[:n]] for n in range(at - 1, 0, -1) if path[:n] in other.seen), None)
        if above is not None and isinstance(path[at - 1], ElementLabel) and NOT_EMPTY not in above.values:
            return  # the array itself tells: on the other side it never has elements
        seen = mine.seen[path]
        own = seen.own[: len(seen.own) - (len(path) - at)]
        field = field_at(self._body, own)
        if field is not None and not any(field.versions.contains(version) for version in other.versions):
            if _has_only_defaults(field_at(self._body, seen.own), seen):
                return
            reason, words = DiffReason.VERSION, f"{field.snake_name} {_version_range(field)}"
        else:
            reason, words = DiffReason.ONLY_HERE, ""
        self._told.add(start)
        step = path[at - 1]
        if isinstance(step, ElementLabel) and step.value is not None:
            value = format_value(step.value)
        else:
            value = self._said(path, seen) if at == len(path) else "there"
        sides = (seen, None) if side == 0 else (None, seen)
        yield self._entry(start, reason, value if side == 0 else "", "" if side == 0 else value, words, *sides)

    def _entry(
        self,
        path: LeafPath,
        reason: DiffReason,
        a: str,
        b: str,
        words: str,
        of_a: FieldOnSide | None,
        of_b: FieldOnSide | None,
    ) -> KeyDifference:
        counts = [seen.values.total() if seen else 0 for seen in (of_a, of_b)]
        rows = [seen.row if seen else None for seen in (of_a, of_b)]
        return KeyDifference(self._part, path, reason, a, b, counts[0], counts[1], words, rows[0], rows[1])


def _merge_replaced_fields(found: list[KeyDifference]) -> list[KeyDifference]:
    """A field that ends where another begins, beside it, was replaced by it: one difference and not two."""
    versioned = [each for each in found if each.reason is DiffReason.VERSION]
    out = [each for each in found if each.reason is not DiffReason.VERSION]
    while versioned:
        one = versioned.pop(0)
        other = next((each for each in versioned if each.path[:-1] == one.path[:-1] and _replaces(one, each)), None)
        if other is None:
            out.append(one)
            continue
        versioned.remove(other)
        a, b = (one, other) if one.a else (other, one)
        name_a, name_b = format_path(a.path[-1:]), format_path(b.path[-1:])
        newer, older = (other, one) if " up to " in one.words else (one, other)
        words = f"{newer.words}; {older.words}"
        out.append(a._replace(path=newer.path, a=name_a, b=name_b, count_b=b.count_b, row_b=b.row_b, words=words))
    return out


def _merge_array_elements(found: list[KeyDifference]) -> list[KeyDifference]:
    """What one array has on one side alone, and on the other alone: one difference."""
    arrays: dict[tuple[str, LeafPath], KeyDifference] = {}
    out: list[KeyDifference] = []
    for each in found:
        if each.reason is not DiffReason.ONLY_HERE or not isinstance(each.path[-1], ElementLabel):
            out.append(each)
            continue
        array = each.path[:-1]
        before = arrays.get((each.part, array))
        alone = each._replace(path=array, words="elements that only one side has")
        arrays[each.part, array] = alone if before is None else before._replace(
            a=_join_lists(before.a, each.a), b=_join_lists(before.b, each.b),
            count_a=max(before.count_a, each.count_a), count_b=max(before.count_b, each.count_b),
            row_a=each.row_a if before.row_a is None else before.row_a,
            row_b=each.row_b if before.row_b is None else before.row_b,
        )  # fmt: skip
    return [*out, *arrays.values()]


def _join_lists(one: str, other: str) -> str:
    """Two lists of words as one; of long ones the beginning."""
    if not one or not other:
        return one or other
    return one if one.endswith("…") else f"{one}, …" if len(one) > MAX_TEXT else f"{one}, {other}"


def _replaces(one: KeyDifference, other: KeyDifference) -> bool:
    return bool(one.a) != bool(other.a) and (" up to " in one.words) != (" up to " in other.words)


def _has_only_defaults(field: Field | None, seen: FieldOnSide) -> bool:
    """Whether all values are what the field's being away means."""
    default = default_of(field) if field is not None else None
    nothing = (default,) if default is not None else (0, "", None, False, EMPTY, 0.0)
    return all(value in (*nothing, NO_SESSION, WITHOUT_SESSION) for value in seen.values)


def _version_range(field: Field) -> str:
    """Which versions have a field, in words."""
    low, high = field.versions.low, field.versions.high
    if field.versions.contains(32_767):
        return f"is there from v{low} on"
    return f"is there up to v{high}" if low == 0 else f"is there in v{low} up to v{high}"


@lru_cache(maxsize=8192)
def field_at(body: str, path: LeafPath) -> Field | None:
    """The schema's field; None for what no schema has."""
    try:
        fields = message(body).fields
    except KeyError:
        return None
    found: Field | None = None
    for step in path:
        if isinstance(step, str):
            found = next((field for field in fields if field.snake_name == step), None)
            if found is None:
                return None
            fields = found.fields
    return found
