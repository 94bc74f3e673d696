"""The tree of a decoded frame: every field with its bytes.

Invariants:
  * the leaves of a source, in order, tile that source exactly: each byte belongs to one leaf;
  * a node's span is the union of its children's spans in the same source;
  * bytes that no field explains are a leaf of type `UNPARSED`; absent fields have no node.

A *source* is a run of bytes that nodes point into. Source 0 is the frame, size prefix included. A decompressed record
section is a separate source, whose nodes are below the compressed leaf.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from dissector.core.finding import Finding
from dissector.core.text import byte_range, clean, shortened
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.schema.model import Field

UNPARSED = "UNPARSED"
WHOLE: Final = "WHOLE"
"""The type of a node that has the values of elements of an array that follow each other, as a list, in trees that are
made for the values and the reason of damage alone."""

_ENCODING: Final = frozenset({"(count)", "(size)", "(length)", "(present)", "(tag)"})

MOST_SHOWN: Final = 200
"""Fields of a tree that a notebook shows."""


class CompressedSpan(NamedTuple):
    """The compressed bytes of a source: their span in another source, and the number of Kafka's codec."""

    source: int
    start: int
    end: int
    codec: int


@dataclass(slots=True)
class ByteSource:
    """Bytes that spans point into. `name` says where they come from: ``frame``, ``records[0] lz4``."""

    number: int
    name: str
    data: bytes
    compressed: CompressedSpan | None = None
    """None for the frame."""


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One field, element, or structure.

    `name` is the field's name, or ``[3]`` for an element; `path` is its path from the message's root
    (``body.topics[0].name``). `type` is Kafka's name of the wire type (``INT32``, ``COMPACT_STRING``, ``ARRAY``,
    ``STRUCT``, …). `value` is None for structures and for null. `note` is the meaning of the value, if known (an
    error's name, a timestamp's date); `advice` says what a client should do about an error. `schema` is None for parts
    that no schema describes (record headers, …). `secret` is the span of the bytes to mask.

    >>> fields = {field.path: field for field in capture[0].request.tree.walk()}
    >>> field = fields["body.client_software_version"]
    >>> field.type, field.value, field.start, field.end
    ('COMPACT_STRING', '4.3.1', 46, 52)
    >>> capture[0].request.data[46:52]
    b'\\x064.3.1'
    """

    name: str
    path: str
    type: str
    start: int
    end: int
    value: object = None
    note: str = ""
    source: int = 0
    schema: Field | None = None
    advice: str = ""
    secret: tuple[int, int] | None = None
    findings: tuple[Finding, ...] = ()
    children: Sequence["Node"] = ()
    """Nearly all nodes are leaves: a list for each would be a quarter of a tree's memory."""

    def __repr__(self) -> str:
        value = "" if self.children or self.value is None else f" {shortened(repr(self.value), 80)}"
        return f"<{self.path or self.name} {self.type}{value}, {byte_range(self.start, self.size)}>"

    def _repr_html_(self) -> str:
        """In a notebook: a line for each field. All text from the wire is escaped."""
        from html import escape  # with a table of all entities, which only notebooks need

        lines = [escape(clean(repr(each))) for each in islice(self.walk(), MOST_SHOWN + 1)]
        lines[MOST_SHOWN:] = ["…"] * (len(lines) > MOST_SHOWN)
        return "<pre>" + "\n".join(lines) + "</pre>"

    def add(self, *children: "Node") -> None:
        """Append children."""
        if type(self.children) is list:
            self.children += children
        else:
            self.children = [*self.children, *children]

    def path_of(self, name: str) -> str:
        """Return the path of a child called `name`."""
        return self.path + name if name.startswith("[") or not self.path else f"{self.path}.{name}"

    @property
    def size(self) -> int:
        """Bytes in its source, length prefixes included."""
        return self.end - self.start

    @property
    def is_text(self) -> bool:
        """Whether it is bytes that can be read as text; its note is that text, in quotation marks."""
        return isinstance(self.value, bytes) and self.note.startswith('"')

    @property
    def is_encoding(self) -> bool:
        """Whether it is a part of the encoding that adds no information to its field: a count, a size, or an empty set
        of tagged fields."""
        return self.name in _ENCODING or (self.name == "(tagged fields)" and self.value == 0)

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it, depth first, in wire order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            if node.children:
                stack.extend(reversed(node.children))

    def leaves(self) -> dict[int, list["Node"]]:
        """Return the nodes that tile each source (those without a child in it), by the number of the source. There may
        be hundreds of sources, so one walk serves them all."""
        found: dict[int, list[Node]] = {}
        for node in self.walk():
            if not any(child.source == node.source for child in node.children):
                found.setdefault(node.source, []).append(node)
        return found

    def find(self, path: str) -> "Node | None":
        """Return the node at `path`, or None."""
        return next((node for node in self.walk() if node.path == path), None)


def last_node(node: Node) -> Node:
    """Return the last node that was begun."""
    while node.children:
        node = node.children[-1]
    return node


_ABSENT: Final = object()
"""The value of a node without a whole field."""


def struct_values(node: Node, data: bytes) -> dict[str, object]:
    """Return the fields of a structure by name; `data` is the frame that the tree is of."""
    values = {child.name: _value(child, data) for child in _fields(node)}
    values = {name: value for name, value in values.items() if value is not _ABSENT}
    unknown = list(_unknown_tags(node))
    return values | ({UNKNOWN_TAGS: unknown} if unknown else {})


def _fields(node: Node) -> list[Node]:
    return [child for child in node.children if not child.name.startswith("(")]


def _value(node: Node, data: bytes) -> object:
    if node.type.endswith("RECORDS") and node.children:
        return data[node.children[0].end : node.end]
    fields = _fields(node)
    if node.note == "null" and not fields:
        return None
    if node.type.endswith("ARRAY"):
        if not any(child.name == "(count)" for child in node.children):
            return _ABSENT
        return [value for child in fields for value in _elements(child, data)]
    if node.type.endswith("STRUCT"):
        return struct_values(node, data) or ({} if _has_end(node) else _ABSENT)
    is_tagged = any(child.name == "(tag)" for child in node.children)
    return node.value if not is_tagged or any(child.name == "(value)" for child in node.children) else _ABSENT


def _elements(node: Node, data: bytes) -> list[object]:
    """Return the values of a child of an array: one, or many, or none of one that is not whole."""
    if node.type == WHOLE:
        assert isinstance(node.value, list)
        return node.value
    value = _value(node, data)
    return [] if value is _ABSENT else [value]


def _has_end(node: Node) -> bool:
    """Return whether the count of tagged fields is there, which ends a structure without fields."""
    return any(child.name == "(tagged fields)" for child in node.children)


def _unknown_tags(node: Node) -> Iterator[dict[str, object]]:
    for child in node.children:
        parts = {part.name: part.value for part in child.children}
        if child.type == "TAGGED_FIELD" and "(data)" in parts:
            yield {"tag": parts["(tag)"], "data": parts["(data)"]}
