"""The tree of a decoded frame: every field tied to its bytes.

Invariants:
  * the leaves of one source, in order, tile that source exactly: no byte is left out, none is claimed twice;
  * a node's span covers its children's spans of the same source and nothing else;
  * bytes that no field explains are a leaf of type `UNPARSED`; fields that are not there have no node.

A *source* is a run of bytes that nodes point into: source 0 is the frame, size prefix included; a decompressed record
section is a source of its own, that hangs under the (compressed) leaf that it came from.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.core.finding import Finding
from dissector.protocol.schema.model import Field

UNPARSED = "UNPARSED"


class CompressedSpan(NamedTuple):
    """Where the compressed bytes stand that a source was: in which other source, with which codec of Kafka's."""

    source: int
    start: int
    end: int
    codec: int


@dataclass(slots=True)
class ByteSource:
    """Bytes that spans count in. `name` says where they come from: ``frame``, ``records[0] lz4``."""

    number: int
    name: str
    data: bytes
    compressed: CompressedSpan | None = None
    """None for the frame."""


@dataclass(slots=True, eq=False)
class Node:
    """One field, element, or structure.

    `name` is the field's own name or ``[3]`` for an element; `path` is the whole way from the message's root
    (``body.topics[0].name``). `type` is Kafka's name of the type as the wire has it (``INT32``, ``COMPACT_STRING``,
    ``ARRAY``, ``STRUCT``, …). `value` is None for structures and for null. `note` is what the value means, where that
    is known (an error's name, a timestamp's date); `advice` is what an error asks of a client. `schema` is None
    for what no schema names (headers of records, …). `secret` are those of its bytes that are not for everybody.
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
    findings: list[Finding] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)

    def path_of(self, name: str) -> str:
        """The path of a child of that name."""
        return self.path + name if name.startswith("[") or not self.path else f"{self.path}.{name}"

    @property
    def size(self) -> int:
        """Bytes that it takes in its source, length prefixes included."""
        return self.end - self.start

    def walk(self) -> Iterator["Node"]:
        """This node and all below it, depth first, in the order of the wire."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self, source: int = 0) -> Iterator["Node"]:
        """The nodes that tile a source: those that have no child in it."""
        for node in self.walk():
            if node.source == source and not any(child.source == source for child in node.children):
                yield node

    def find(self, path: str) -> "Node | None":
        """The node at `path`, or None."""
        return next((node for node in self.walk() if node.path == path), None)
