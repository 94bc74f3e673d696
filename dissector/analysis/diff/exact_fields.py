"""Two exchanges field by field, as the wire has them.

A comparison of clients leaves out what depends on when a program ran and what it was told to work on: offsets, epochs,
names, which partition, records. Whoever holds two exchanges side by side asks for these, too. The fields are the leaves
of the comparison, under their own names: elements of arrays stand beside each other by what identifies them. Records,
and elements that nothing identifies, are compared as bytes.

Invariant: if no field is unequal, both exchanges have the same messages, and their bodies the same bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.field_schemas import canonical_path
from dissector.analysis.diff.formatting import format_value
from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, LeafPath, message_leaves
from dissector.analysis.diff.node_lookup import FieldNodes
from dissector.analysis.diff.result import FieldDifference
from dissector.core.text import counted
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.tree import Node

RECORDS: Final = "records"
ARRAY: Final = "ARRAY"
"""What the types of arrays end in."""
MOST_TEXT: Final = 200
"""Characters of the values of an array."""
WHOLE: Final[LeafPath] = ()
"""The path of a body."""
Paths = tuple[LeafPath | None, LeafPath | None]
"""The path of a field in A and in B; None where the other side alone has it."""


class ExactField(NamedTuple):
    """A field of two exchanges."""

    part: str
    """``request`` or ``response``."""
    where: Paths
    texts: tuple[str, str]
    """What a field has whose node has no single value; else empty."""
    is_equal: bool
    difference: FieldDifference | None
    """Why it counts as a difference between clients, if it does."""


def exact_fields(a: Exchange, b: Exchange, differences: Sequence[FieldDifference]) -> list[ExactField]:
    """Compare two exchanges of one API. `differences` are those that a comparison found (`DiffResult.differences`)."""
    found: list[ExactField] = []
    for part in ("request", "response"):
        sides = tuple(_Side(a.fields.api, part, getattr(each, part)) for each in (a, b))
        reasons = [each for each in differences if each.part == part]
        fields = dict.fromkeys((*sides[0].fields, *sides[1].fields))
        of_part = [_exact(part, canonical, sides, reasons) for canonical in fields]
        is_one_sided = (sides[0].message is None) != (sides[1].message is None)
        if all(each.is_equal for each in of_part) and (is_one_sided or sides[0].body != sides[1].body):
            paths = [None if each.message is None else WHOLE for each in sides]
            texts = ["" if each.message is None else counted(len(each.body), "byte") for each in sides]
            of_part.append(ExactField(part, (paths[0], paths[1]), (texts[0], texts[1]), False, None))
        found += of_part
    return found


class _Side:
    """A message of one exchange: its fields by their canonical paths, and their nodes."""

    def __init__(self, api: str, part: str, message: ExchangeMessage | None) -> None:
        self.message = message
        self.fields: dict[LeafPath, tuple[LeafPath, ComparedValue]] = {}
        """The path of each field, and its value for a comparison, by its canonical path; in the order of the wire."""
        self.unlabeled: set[LeafPath] = set()
        """Arrays of structures that nothing identifies."""
        self._nodes = None if message is None else FieldNodes(message)
        for path, value in () if message is None else message_leaves(message):
            if UNLABELED in path[:-1]:
                self.unlabeled.add(path[: path.index(UNLABELED)])
                continue
            canonical = canonical_path(f"{api}{part.capitalize()}", path)
            if canonical is not None and self._is_there(path):
                self.fields.setdefault(canonical, (path, value))
                for records in ((*element, RECORDS) for element in _elements(path)):
                    if self.node(records) is not None:
                        self.fields.setdefault(records, (records, None))

    def path(self, canonical: LeafPath) -> LeafPath | None:
        return self.fields[canonical][0] if canonical in self.fields else None

    def value(self, canonical: LeafPath) -> ComparedValue:
        """Return the value of a field for a comparison."""
        return self.fields[canonical][1] if canonical in self.fields else None

    def _is_there(self, path: LeafPath) -> bool:
        """Return whether the wire has a field: a tagged one that is absent has its default for a comparison."""
        return self._nodes is not None and self._nodes.at(path[:-1] if path[-1:] == (UNLABELED,) else path) is not None

    def node(self, path: LeafPath) -> Node | None:
        """Return the node with a field's value: of elements without a label that of the array."""
        if self._nodes is None:
            return None
        is_of_array = path[-1:] == (UNLABELED,)
        node = self._nodes.at(path[:-1] if is_of_array else path)
        return node if node is None or is_of_array or not path or node.name == path[-1] else None

    def data(self, node: Node) -> bytes:
        return b"" if self.message is None else self.message.data[node.start : node.end]

    @property
    def body(self) -> bytes:
        """The bytes behind the header."""
        if self.message is None:
            return b""
        body = next((child for child in self.message.tree.children if child.name == "body"), None)
        return (b"" if body is None else self.data(body)) + self.message.rest


def _exact(part: str, canonical: LeafPath, sides: Sequence[_Side], reasons: Sequence[FieldDifference]) -> ExactField:
    where = (sides[0].path(canonical), sides[1].path(canonical))
    contents = [_content(side, canonical) for side in sides]
    reason = next((each for each in reasons if _is_at(each, where)), None)
    values, texts = [each[0] for each in contents], (contents[0][1], contents[1][1])
    # NaN is not equal to itself
    is_equal = None not in where and (values[0] == values[1] or repr(values[0]) == repr(values[1]))
    return ExactField(part, where, texts, is_equal, None if is_equal else reason)


def _content(side: _Side, canonical: LeafPath) -> tuple[object, str]:
    """Return what a field has that can be compared, and a text of it where its node has no value."""
    path = side.path(canonical)
    node = None if path is None else side.node(path)
    if path is None:
        return None, ""
    if node is None:  # a property of a batch, which shares a node with others
        return side.value(canonical), format_value(side.value(canonical))
    if node.name == RECORDS or path in side.unlabeled:
        return side.data(node), counted(node.size, "byte")
    elements = [child for child in node.children if child.name.startswith("[")]
    if not elements and not node.children:
        return node.value, ""
    if not elements:
        return ([], "empty") if node.type.endswith(ARRAY) else (None, "")
    if any(each.children for each in elements):  # its elements have fields of their own
        return len(elements), counted(len(elements), "element")
    values = [each.value for each in elements]
    return values, ", ".join(map(str, values))[:MOST_TEXT]


def _is_at(difference: FieldDifference, where: Paths) -> bool:
    there = (difference.where_a, difference.where_b)
    return any(path is not None and path == wanted for path, wanted in zip(there, where, strict=True))


def _elements(path: LeafPath) -> Iterator[LeafPath]:
    """Yield the paths of the elements that a field is in."""
    return (path[: n + 1] for n, step in enumerate(path) if isinstance(step, ElementLabel))
