"""Compare the fields of one matching key: which values each side has, and why they differ.

Sets of values are compared, not the n-th value with the n-th: more iterations of a loop are no difference, and a
different setting is one difference, however often it was sent. A field with more than `MAX_COMPARED_VALUES` values on
both sides varies on both and is not compared.
"""

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import COUNTED_KINDS, POSITION, SESSION, ComparedValue, EntityName
from dissector.analysis.diff.formatting import format_path, format_value, format_values
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import GROUP_PROTOCOLS
from dissector.analysis.diff.message_leaves import (
    BYTE_LIMITS,
    EMPTY,
    NO_SESSION,
    NOT_EMPTY,
    TIMES_LEFT,
    UNLABELED,
    WITHOUT_SESSION,
    ElementLabel,
    LeafPath,
    PathStep,
    default_of,
    path_without_labels,
    time_set,
)
from dissector.analysis.diff.moved_fields import canonical_path, other_paths
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import is_partition_label
from dissector.analysis.diff.result import DiffReason
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import Field, Versions

MAX_COMPARED_VALUES: Final = 8
MAX_TEXT: Final = 60
FIRST: Final = 1 << 62
"""More than any count."""
NO_VALUES: Final[Counter[ComparedValue]] = Counter()
ASSIGNED: Final = {
    "SyncGroupRequest": "assignments.assignment.assigned_partitions",
    "SyncGroupResponse": "assignment.assigned_partitions",
}
"""A leader assigns nothing while it does not know the topic; when it learns of it varies from run to run."""
ELEMENTS: Final = "array elements"
UNTIL: Final = " up to "
"""In a range of versions, before the last one that has a field."""
ABOUT_LIMITS: Final = TIMES_LEFT | BYTE_LIMITS
"""Fields that some clients send with a little less, or a little more, than what is set."""
GROUP_APIS: Final = ("JoinGroup", "SyncGroup", *GROUP_PROTOCOLS)
SHARES: Final = frozenset(
    ("assigned_partitions", "owned_partitions", "topic_partitions", "active_tasks", "standby_tasks", "warmup_tasks")
)
"""What says which partitions a member of a group has, in assignments and in heartbeats."""
COMES_WITH_TIME: Final[dict[tuple[str, str], frozenset[ComparedValue]]] = {
    ("FetchRequest", "forgotten_topics_data"): frozenset((NOT_EMPTY,)),
    **dict.fromkeys(
        (("OffsetFetchResponse", f"{above}topics.partitions.{name}") for above in ("", "groups.")
         for name in ("committed_offset", "committed_leader_epoch")), frozenset((POSITION,))
    ),
}  # fmt: skip
"""By body and path: values that a field can have later, and not at first."""
EMPTY_VALUES: Final[frozenset[ComparedValue]] = frozenset((None, "", EMPTY))
"""What a broker responds for "nothing": which of them depends on the version."""


class FieldOnSide(NamedTuple):
    """A field on one side."""

    values: Counter[ComparedValue]
    path: LeafPath
    """The path in that side's messages."""
    row: int


class KeyDifference(NamedTuple):
    """A difference within one matching key. `path` has labels."""

    part: str
    path: LeafPath
    reason: DiffReason
    a: str
    b: str
    count_a: int
    count_b: int
    explanation: str
    row_a: int | None
    row_b: int | None
    subject: str = ""
    """What the requests of one side alone are for."""
    setting: str = ""
    """The place of the setting behind it in `client_settings.json`, where that does not follow from the path."""


@dataclass(frozen=True, slots=True)
class _SideFields:
    """One side's fields of a part, by their canonical path."""

    fields: dict[LeafPath, FieldOnSide]
    prefixes: frozenset[LeafPath]
    versions: frozenset[int]


def compare_fields(api: str, a: KeyProfile, b: KeyProfile, names: NameMatching) -> Iterator[KeyDifference]:
    """Yield the differences between the fields of both sides under one key."""
    for part in ("request", "response"):
        body = f"{api}{part.capitalize()}"
        sides = [_side_fields(body, part, profile, names, side) for side, profile in enumerate((a, b))]
        if all(side.fields or _has_no_fields(body, side.versions) for side in sides):
            found = _PartComparison(part, body, sides[0], sides[1], names).differences()
            yield from _merge_array_elements(_merge_replaced_fields(found))


def _side_fields(body: str, part: str, profile: KeyProfile, names: NameMatching, side: int) -> _SideFields:
    fields: dict[LeafPath, FieldOnSide] = {}
    for (own_part, own_path), values in profile.fields.items():
        canonical = canonical_path(body, own_path) if own_part == part else None
        if canonical is not None and not names.is_left_out(side, canonical):
            path = names.path(side, canonical)
            row = profile.first_rows[own_part, own_path]
            field = fields.setdefault(path, FieldOnSide(Counter(), own_path, row))
            for value, count in values.items():
                if not names.is_left_out(side, (), value):
                    field.values[names.value_at(side, canonical, value)] += count
    prefixes = frozenset(path[:n] for path in fields for n in range(len(path) + 1))
    return _SideFields(fields, prefixes, frozenset(profile.versions))


class _PartComparison:
    """Compares the requests or the responses of one key."""

    def __init__(self, part: str, body: str, a: _SideFields, b: _SideFields, names: NameMatching) -> None:
        self._part = part
        self._body = body
        self._sides = (a, b)
        self._names = names
        self._reported: set[LeafPath] = set()

    def differences(self) -> list[KeyDifference]:
        a, b = self._sides
        out: list[KeyDifference] = []
        for path in dict.fromkeys((*a.fields, *b.fields)):
            if path in a.fields and path in b.fields:
                out += self._compare_values(path, a.fields[path], b.fields[path])
            elif path in a.fields:
                out += self._report_missing(path, 0)
            else:
                out += self._report_missing(path, 1)
        return out

    def _compare_values(self, path: LeafPath, a: FieldOnSide, b: FieldOnSide) -> Iterator[KeyDifference]:
        values_a, values_b = frozenset(a.values), frozenset(b.values)
        if values_a == values_b or (len(values_a) > MAX_COMPARED_VALUES and len(values_b) > MAX_COMPARED_VALUES):
            return
        if path[-1] in ABOUT_LIMITS and _are_of_equal_times(values_a, values_b):
            return
        if _differ_in_number(values_a, values_b) or _is_share(self._body, path):
            return
        if _differ_by_time(self._body, path, values_a, values_b):
            return
        if NOT_EMPTY in values_a & values_b and path_without_labels(path) == ASSIGNED.get(self._body):
            return
        reason, explanation = DiffReason.VALUE, ""
        field = field_at(self._body, a.path)
        default = default_of(field) if field is not None else None
        if path[-1] == "compression":
            reason = DiffReason.CODEC
        elif (
            field is not None
            and self._part == "response"
            and values_a ^ values_b <= EMPTY_VALUES
            and self._one_side_has_null(field)
        ):
            reason, explanation = DiffReason.VERSION, f"null since v{field.nullable_versions.low}"
        elif self._part == "request" and default is not None and (values_a == {default}) != (values_b == {default}):
            reason = DiffReason.DEFAULT
            explanation = f"{'{a}' if values_a == {default} else '{b}'} has the schema's default"
        text_a, text_b = (
            self._text(path, field, side, other.values) for side, (field, other) in enumerate(((a, b), (b, a)))
        )
        yield self._difference(path, reason, text_a, text_b, explanation, a, b)

    def _one_side_has_null(self, field: Field) -> bool:
        """Return whether a field is nullable in the versions of exactly one side."""
        a, b = (any(map(field.nullable_versions.contains, side.versions)) for side in self._sides)
        return a != b

    def _text(self, path: LeafPath, field: FieldOnSide, side: int, other: Counter[ComparedValue] = NO_VALUES) -> str:
        """Return the values of a side, with the names that it has itself."""
        counts = common_first(field.values, other)
        own = Counter({self._names.own(side, value): count for value, count in counts.items()})
        return format_values(self._body, own, path_without_labels(path))

    def _report_missing(self, path: LeafPath, side: int) -> Iterator[KeyDifference]:
        """Report what one side alone has: once, at the first step of the path that the other side lacks."""
        mine, other = self._sides[side], self._sides[1 - side]
        # A structure that is null on one side and has fields on the other: the path ends on one and goes on.
        depth = next((n for n in range(1, len(path) + 1) if path[:n] not in other.prefixes), len(path))
        start = path[:depth]
        if start in self._reported:
            return
        above = next((other.fields[path[:n]] for n in range(depth - 1, 0, -1) if path[:n] in other.fields), None)
        if above is not None and isinstance(path[depth - 1], ElementLabel) and NOT_EMPTY not in above.values:
            return  # the array itself is reported: it never has elements on the other side
        if _is_one_of_many(path[depth - 1], NO_VALUES if above is None else above.values):
            return
        field = mine.fields[path]
        own_path = field.path[: len(field.path) - (len(path) - depth)]
        schema = field_at(self._body, own_path)
        if schema is not None and not any(schema.versions.contains(version) for version in other.versions):
            if _has_only_defaults(field_at(self._body, field.path), field):
                return
            reason = DiffReason.VERSION
            explanation = f"{schema.snake_name} {_version_range(_all_versions(self._body, own_path, schema))}"
        else:
            reason, explanation = DiffReason.ONE_SIDE, ""
        self._reported.add(start)
        step = path[depth - 1]
        if isinstance(step, ElementLabel) and step.value is not None:
            text = format_value(self._names.own(side, step.value))
            text = f"partition {text}" if is_partition_label(path, depth - 1) else text
        else:
            elements = mine.fields.get((*path, UNLABELED)) if NOT_EMPTY in field.values else None
            text = self._text(path, elements or field, side) if depth == len(path) else "present"
        fields = (field, None) if side == 0 else (None, field)
        texts = (text, "") if side == 0 else ("", text)
        yield self._difference(start, reason, *texts, explanation, *fields)

    def _difference(
        self,
        path: LeafPath,
        reason: DiffReason,
        a: str,
        b: str,
        explanation: str,
        field_a: FieldOnSide | None,
        field_b: FieldOnSide | None,
    ) -> KeyDifference:
        counts = [field.values.total() if field else 0 for field in (field_a, field_b)]
        rows = [field.row if field else None for field in (field_a, field_b)]
        return KeyDifference(self._part, path, reason, a, b, counts[0], counts[1], explanation, rows[0], rows[1])


def common_first(mine: Counter[ComparedValue], other: Counter[ComparedValue]) -> Counter[ComparedValue]:
    """Return the values of a side with counts by which those that both sides have come first, and in the same order."""
    return Counter({value: FIRST + count + other[value] if value in other else count for value, count in mine.items()})


def _differ_in_number(a: Set[ComparedValue], b: Set[ComparedValue]) -> bool:
    """Return whether one side has more fetch sessions than the other, or more members, and else the same."""
    kinds = [{value.kind for value in side if isinstance(value, EntityName)} for side in (a ^ b, a, b)]
    has_other_values = any(not isinstance(value, EntityName) for value in a ^ b)
    is_less = a < b or b < a or kinds[0] <= {SESSION}
    return not has_other_values and is_less and kinds[0] <= COUNTED_KINDS & kinds[1] & kinds[2]


def _differ_by_time(body: str, path: LeafPath, a: Set[ComparedValue], b: Set[ComparedValue]) -> bool:
    """Return whether one side alone has, besides what both have, what comes with time: a session forgets partitions
    that its consumer no longer reads, and a second lookup finds the offset that was committed after the first one."""
    return bool(a & b) and a ^ b <= COMES_WITH_TIME.get((body, path_without_labels(path)), frozenset())


def _is_one_of_many(step: PathStep, array: Counter[ComparedValue]) -> bool:
    """Return whether a step is to a member of a group, and the other side's array has some, too: how many is not
    compared."""
    value = step.value if isinstance(step, ElementLabel) else None
    return isinstance(value, EntityName) and value.kind in COUNTED_KINDS and NOT_EMPTY in array


def _is_share(body: str, path: LeafPath) -> bool:
    """Return whether values are the partitions that a member got: which of them is chance, as member ids are."""
    is_partition = path_without_labels(path).rpartition(".")[2] == "partitions"
    return is_partition and body.startswith(GROUP_APIS) and not SHARES.isdisjoint(path)


def _are_of_equal_times(a: Set[ComparedValue], b: Set[ComparedValue]) -> bool:
    """Return whether two sides set the same times, of which some requests have only what is left."""
    times = [{time for value in side if isinstance(time := time_set(value), int)} for side in (a, b)]
    if not all(times) or max(times[0]) != max(times[1]):
        return False
    return all(time_set(value) != value or time_set(value) in times[0] & times[1] for value in a ^ b)


def _merge_replaced_fields(found: list[KeyDifference]) -> list[KeyDifference]:
    """Merge a field that ends in some version with the one beside it that replaces it."""
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
        newer, older = (other, one) if UNTIL in one.explanation else (one, other)
        explanation = f"{newer.explanation}; {older.explanation}"
        out.append(
            a._replace(path=newer.path, a=name_a, b=name_b, count_b=b.count_b, row_b=b.row_b, explanation=explanation)
        )
    return out


def _merge_array_elements(found: list[KeyDifference]) -> list[KeyDifference]:
    """Merge the elements of one array that only one side has into one difference."""
    arrays: dict[tuple[str, LeafPath], KeyDifference] = {}
    out: list[KeyDifference] = []
    for each in found:
        if each.reason is not DiffReason.ONE_SIDE or not isinstance(each.path[-1], ElementLabel):
            out.append(each)
            continue
        array = each.path[:-1]
        before = arrays.get((each.part, array))
        element = each._replace(path=array, explanation=ELEMENTS)
        arrays[each.part, array] = element if before is None else before._replace(
            a=_join_lists(before.a, each.a), b=_join_lists(before.b, each.b),
            count_a=max(before.count_a, each.count_a), count_b=max(before.count_b, each.count_b),
            row_a=each.row_a if before.row_a is None else before.row_a,
            row_b=each.row_b if before.row_b is None else before.row_b,
        )  # fmt: skip
    return [*out, *arrays.values()]


def _join_lists(one: str, other: str) -> str:
    """Join two lists of values; of long ones only the beginning."""
    if not one or not other:
        return one or other
    return one if one.endswith("…") else f"{one}, …" if len(one) > MAX_TEXT else f"{one}, {other}"


def _replaces(one: KeyDifference, other: KeyDifference) -> bool:
    return bool(one.a) != bool(other.a) and (UNTIL in one.explanation) != (UNTIL in other.explanation)


def _has_only_defaults(schema: Field | None, field: FieldOnSide) -> bool:
    """Return whether all values mean the same as the field's absence."""
    default = default_of(schema) if schema is not None else None
    defaults = (default,) if default is not None else (0, "", None, False, EMPTY, 0.0)
    return all(value in (*defaults, NO_SESSION, WITHOUT_SESSION) for value in field.values)


def _all_versions(body: str, path: LeafPath, schema: Field) -> Versions:
    """Return the versions that have the field at a path, there or where others have it: OffsetFetch up to v7 has its
    topics outside `groups`."""
    others = (field_at(body, other) for other in other_paths(body, path))
    ranges = [schema.versions, *(field.versions for field in others if field is not None)]
    return Versions(min(each.low for each in ranges), max(each.high for each in ranges))


def _version_range(versions: Versions) -> str:
    """Describe which versions have a field: ``since v13``, ``up to v12``, ``from v3 up to v5``."""
    low, high = versions.low, versions.high
    if versions.contains(32_767):
        return f"since v{low}"
    return f"up to v{high}" if low == 0 else f"from v{low}{UNTIL}v{high}"


def _has_no_fields(body: str, versions: frozenset[int]) -> bool:
    """Return whether a message is empty in all of these versions, as an ApiVersions request up to v2 is."""
    try:
        fields = message(body).fields
    except KeyError:
        return False
    return bool(versions) and not any(field.versions.contains(version) for field in fields for version in versions)


@lru_cache(maxsize=8192)
def field_at(body: str, path: LeafPath) -> Field | None:
    """Return the schema's field at a path; None for a path that no schema has."""
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
