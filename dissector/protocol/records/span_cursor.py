"""Reading one source from left to right, a leaf a value: what both record formats are traced with.

Invariant: leaves follow each other without a hole; a parent ends where its last leaf does.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError, varint, varlong

_CODES: Final = {"INT64": ">q", "INT32": ">i", "UINT32": ">I", "INT16": ">h", "INT8": ">b"}


class SpanCursor:
    """Where reading stands in a source, and how far it may go."""

    def __init__(self, data: bytes, at: int, end: int, source: int) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.source = source

    def begin(self, parent: Node, name: str, kind: str) -> Node:
        """A node with children to come."""
        node = Node(name, parent.path_of(name), kind, self.at, self.at, source=self.source)
        parent.children.append(node)
        return node

    @contextmanager
    def within(self, node: Node, end: int) -> Iterator[None]:
        """Nothing is read past `end`; whatever happens, the node ends where reading ended."""
        outer, self.end = self.end, end
        try:
            yield
        finally:
            node.end, self.end = self.at, outer

    def leaf(self, parent: Node, name: str, kind: str, end: int, value: object, note: str = "") -> Node:
        """A value that ends at `end`."""
        if end > self.end:
            raise WireError(f"{name} runs past the end", self.at)
        node = Node(name, parent.path_of(name), kind, self.at, end, value, note, source=self.source)
        parent.children.append(node)
        self.at = parent.end = end
        return node

    def fixed(self, parent: Node, name: str, kind: str, note: str = "") -> int:
        """A fixed-width integer."""
        layout = _CODES[kind]
        end = self.at + struct.calcsize(layout)
        if end > self.end:
            raise WireError(f"{name} runs past the end", self.at)
        value = int(struct.unpack_from(layout, self.data, self.at)[0])
        self.leaf(parent, name, kind, end, value, note)
        return value

    def varint(self, parent: Node, name: str) -> int:
        """A VARINT."""
        value, end = varint(self.data, self.at)
        self.leaf(parent, name, "VARINT", end, value)
        return value

    def varlong(self, parent: Node, name: str) -> tuple[int, Node]:
        """A VARLONG, and its leaf."""
        value, end = varlong(self.data, self.at)
        return value, self.leaf(parent, name, "VARLONG", end, value)

    def blob(self, parent: Node, name: str, size: int, start: int) -> bytes | None:
        """Bytes that begin at `start`, after their length; a negative one is null."""
        end = start + max(size, 0)
        if end > self.end:
            raise WireError(f"{name} runs past its record", self.at)
        raw = None if size < 0 else self.data[start:end]
        self.leaf(parent, name, "BYTES", end, raw, "" if raw is None else text_preview(raw))
        return raw

    def rest(self, parent: Node) -> int:
        """A leaf of what is left, if anything is; its size."""
        size = self.end - self.at
        if size > 0:
            self.leaf(parent, "(rest)", "UNPARSED", self.end, self.data[self.at : self.end])
        return size


def text_preview(raw: bytes) -> str:
    """The first bytes as text, where they are text."""
    words = raw[:40].decode("utf-8", "replace")
    return f'"{words}"' if words.isprintable() and "\ufffd" not in words else ""


def timestamp_note(milliseconds: int) -> str:
    """A Kafka timestamp as a date, where it is one."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if milliseconds >= 0 else ""
