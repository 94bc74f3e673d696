"""Compare the fields of one matching key: which values each side has, and why they differ.

Sets of values are compared, not the n-th value with the n-th: more iterations of a loop are no difference, and a
different setting is one difference, however often it was sent. A field with more than `MAX_COMPARED_VALUES` values on
both sides varies on both and is not compared.
"""

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissector.analysis.diff.captured_span import BOTH_WHOLE, Sights, may_be_equal
from dissector.analysis.diff.compared_values import COUNTED_KINDS, POSITION, SESSION, ComparedValue, EntityName
from dissector.analysis.diff.field_schemas import all_versions, canonical_path, field_at, has_no_fields, version_range
from dissector.analysis.diff.formatting import format_value, format_values
from dissector.analysis.diff.key_differences import KeyDifference, merge_array_elements, merge_replaced_fields
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
from dissector.analysis.diff.name_matching import GENERATED_KINDS, NameMatching
from dissector.analysis.diff.name_uses import is_partition_label
from dissector.analysis.diff.result import DiffReason
from dissector.protocol.schema.model import Field

MAX_COMPARED_VALUES: Final = 8
FIRST: Final = 1 << 62
"""More than any count."""
NO_VALUES: Final[Counter[ComparedValue]] = Counter()
ASSIGNED: Final = {
    "SyncGroupRequest": "assignments.assignment.assigned_partitions",
    "SyncGroupResponse": "assignment.assigned_partitions",
}
"""A leader assigns nothing while it does not know the topic; when it learns of it varies from run to run."""
ABOUT_LIMITS: Final = TIMES_LEFT | BYTE_LIMITS
"""Fields that some clients send with a little less, or a little more, than what is set."""
GROUP_APIS: Final = ("JoinGroup", "SyncGroup", *GROUP_PROTOCOLS)
SHARES: Final = frozenset(
    ("assigned_partitions", "owned_partitions", "topic_partitions", "active_tasks", "standby_tasks", "warmup_tasks")
)
"""What says which partitions a member of a group has, in assignments and in heartbeats."""
NO_EPOCH: Final = -1
"""Of a committed offset: its consumer has read nothing of the partition (KIP-320)."""
COMMITTED_EPOCH: Final = ("OffsetCommitRequest", "topics.partitions.committed_leader_epoch")
COMES_WITH_TIME: Final[dict[tuple[str, str], frozenset[ComparedValue]]] = {
    ("FetchRequest", "forgotten_topics_data"): frozenset((NOT_EMPTY,)),
    COMMITTED_EPOCH: frozenset((NO_EPOCH,)),
    ("FetchResponse", "responses.partitions.aborted_transactions"): frozenset((None,)),
    ("ProduceResponse", "responses.partition_responses.log_append_time_ms"): frozenset((POSITION,)),
    **dict.fromkeys(
        (("OffsetFetchResponse", f"{above}topics.partitions.{name}") for above in ("", "groups.")
         for name in ("committed_offset", "committed_leader_epoch")), frozenset((POSITION,))
    ),
}  # fmt: skip
"""By body and path: values that a field can have at one time, and not at another."""
LOOKED_UP: Final = ("ListOffsetsRequest", "topics.partitions.timestamp")
FILLED: Final[frozenset[ComparedValue]] = frozenset((EMPTY, NOT_EMPTY))
"""Whether an array has elements: of a fetch session that goes on it mostly has none."""
SEVERAL: Final = 3
"""Fewer requests of a late capture do not show what its clients always do."""
BROKER: Final = "broker"
TOPIC_UUID: Final = "uuid"
"""The kind of the name of a topic of which only the id is known."""
EMPTY_VALUES: Final[frozenset[ComparedValue]] = frozenset((None, "", EMPTY))
"""What a broker responds for "nothing": which of them depends on the version."""


class FieldOnSide(NamedTuple):
    """A field on one side."""

    values: Counter[ComparedValue]
    path: LeafPath
    """The path in that side's messages."""
    row: int


@dataclass(frozen=True, slots=True)
class _SideFields:
    """One side's fields of a part, by their canonical path."""

    fields: dict[LeafPath, FieldOnSide]
    prefixes: frozenset[LeafPath]
    versions: frozenset[int]


def compare_fields(
    api: str, a: KeyProfile, b: KeyProfile, names: NameMatching, both: Sights = BOTH_WHOLE
) -> Iterator[KeyDifference]:
    """Yield the differences between the fields of both sides under one key, but for what a side may have missed."""
    for part in ("request", "response"):
        body = f"{api}{part.capitalize()}"
        sides = [_side_fields(api, part, profile, names, side) for side, profile in enumerate((a, b))]
        if all(side.fields or has_no_fields(body, side.versions) for side in sides):
            found = _PartComparison(part, body, sides[0], sides[1], names, both).differences()
            yield from merge_array_elements(merge_replaced_fields(found))


def _side_fields(api: str, part: str, profile: KeyProfile, names: NameMatching, side: int) -> _SideFields:
    body = f"{api}{part.capitalize()}"
    fields: dict[LeafPath, FieldOnSide] = {}
    for (own_part, own_path), values in profile.fields.items():
        canonical = canonical_path(body, own_path) if own_part == part else None
        if canonical is not None and not names.is_left_out(side, api, canonical):
            path = names.path(side, canonical)
            row = profile.first_rows[own_part, own_path]
            field = fields.setdefault(path, FieldOnSide(Counter(), own_path, row))
            for value, count in values.items():
                if not names.is_left_out(side, api, (), value):
                    field.values[names.value_at(side, canonical, value)] += count
    prefixes = frozenset(path[:n] for path in fields for n in range(len(path) + 1))
    return _SideFields(fields, prefixes, frozenset(profile.versions))


class _PartComparison:
    """Compares the requests or the responses of one key."""

    def __init__(self, part: str, body: str, a: _SideFields, b: _SideFields, names: NameMatching, both: Sights) -> None:
        self._part = part
        self._body = body
        self._sides = (a, b)
        self._names = names
        self._sights = both
        self._is_partial = any(each.is_partial for each in both)
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
        if self._is_partial and self._may_be_equal(a.values, b.values):
            return
        if path[-1] in ABOUT_LIMITS and _are_of_equal_times(values_a, values_b):
            return
        if _differ_in_number(values_a, values_b) or _is_share(self._body, path):
            return
        if _differ_by_time(self._body, path, values_a, values_b) or self._is_epoch_of_another(path):
            return
        if self._is_other_lookup(path, values_a, values_b) or self._are_other_brokers(path, values_a, values_b):
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
        found = self._difference(path, reason, text_a, text_b, explanation, a, b)
        yield found._replace(values=(values_a, values_b))

    def _may_be_equal(self, a: Counter[ComparedValue], b: Counter[ComparedValue]) -> bool:
        """Return whether two sides may have the same values, were both captured whole. Generated names are matched by
        their use, of which a part is missing; and a few requests of a late capture show one of several clients."""
        others = a.keys() ^ b.keys()
        if others <= FILLED or all(isinstance(each, EntityName) and each.kind in GENERATED_KINDS for each in others):
            return True
        if all(each.is_partial for each in self._sights) and any(each.begins_late for each in self._sights):
            return min(a.total(), b.total()) < SEVERAL or may_be_equal(a, b, self._sights)
        return may_be_equal(a, b, self._sights)

    def _is_other_lookup(self, path: LeafPath, a: Set[ComparedValue], b: Set[ComparedValue]) -> bool:
        """Return whether one side alone looks up, besides what both do, another offset of a partition, as the other one
        does of other partitions: Streams asks for the end of a topic when it waits for its records."""
        if (self._body, path_without_labels(path)) != LOOKED_UP or not a & b:
            return False
        for more, less, side in ((a, b, self._sides[1]), (b, a, self._sides[0])):
            if less < more:
                of_others = (each.values for at, each in side.fields.items() if path_without_labels(at) == LOOKED_UP[1])
                return more <= {value for values in of_others for value in values}
        return False

    def _is_epoch_of_another(self, path: LeafPath) -> bool:
        """Return whether both sides commit with an epoch and without one, if of other partitions: of which kafka-python
        knows the epoch depends on what it has read by then."""
        if (self._body, path_without_labels(path)) != COMMITTED_EPOCH:
            return False
        values = [
            {
                value
                for at, each in side.fields.items()
                if path_without_labels(at) == COMMITTED_EPOCH[1]
                for value in each.values
            }
            for side in self._sides
        ]
        return values[0] == values[1]

    def _are_other_brokers(self, path: LeafPath, a: Set[ComparedValue], b: Set[ComparedValue]) -> bool:
        """Return whether a response names another broker: which of them leads a partition, or coordinates a group, is
        the cluster's choice, and the controller that it names is any."""
        of_brokers = (isinstance(each, EntityName) and each.kind == BROKER for each in a ^ b)
        have_one = all(any(isinstance(each, EntityName) for each in side) for side in (a, b))
        return self._part == "response" and path[-1] != UNLABELED and have_one and all(of_brokers)

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
            explanation = f"{schema.snake_name} {version_range(all_versions(self._body, own_path, schema))}"
        else:
            if self._sights[1 - side].is_partial or (self._is_partial and is_partition_label(path, depth - 1)):
                return
            if self._sights[side].begins_late and _is_unnamed(path[depth - 1]):
                return
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
    that its consumer no longer reads, a second lookup finds the offset that was committed after the first one, a
    broker says when it appended a batch that it has already, and nothing of the aborted transactions of a partition for
    whose records a response had no room."""
    return bool(a & b) and a ^ b <= COMES_WITH_TIME.get((body, path_without_labels(path)), frozenset())


def _is_one_of_many(step: PathStep, array: Counter[ComparedValue]) -> bool:
    """Return whether a step is to a member of a group, and the other side's array has some, too: how many is not
    compared."""
    value = step.value if isinstance(step, ElementLabel) else None
    return isinstance(value, EntityName) and value.kind in COUNTED_KINDS and NOT_EMPTY in array


def _is_unnamed(step: PathStep) -> bool:
    """Return whether a step is to a topic whose id nobody named: Metadata does, before a late capture begins."""
    value = step.value if isinstance(step, ElementLabel) else None
    return isinstance(value, EntityName) and value.kind == TOPIC_UUID


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


def _has_only_defaults(schema: Field | None, field: FieldOnSide) -> bool:
    """Return whether all values mean the same as the field's absence."""
    default = default_of(schema) if schema is not None else None
    defaults = (default,) if default is not None else (0, "", None, False, EMPTY, 0.0)
    return all(value in (*defaults, NO_SESSION, WITHOUT_SESSION) for value in field.values)
