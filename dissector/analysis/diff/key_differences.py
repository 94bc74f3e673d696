"""Differences within one matching key, and which of them are one: a field and the one that replaces it in newer
versions, the elements of one array."""

from collections.abc import Set
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.field_schemas import UNTIL
from dissector.analysis.diff.formatting import format_path
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath
from dissector.analysis.diff.result import DiffReason

ELEMENTS: Final = "array elements"
MAX_TEXT: Final = 60
"""Characters of a list of values to which others are added."""


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
    values: tuple[Set[ComparedValue], ...] = ()
    """Of a field that both sides have, A's and B's: the texts have them in the order of their frequency."""


def merge_replaced_fields(found: list[KeyDifference]) -> list[KeyDifference]:
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


def merge_array_elements(found: list[KeyDifference]) -> list[KeyDifference]:
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
