"""Reads one source from left to right and adds a leaf per value; opens compressed sections, each a new source. Both
record formats are traced with it, and messages (`codec.tracer`).

Invariant: leaves are contiguous; a parent ends where its last leaf ends.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.protocol.codec.plan import STRUCTS
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError, codec_name
from dissector.protocol.records.entries import RecordsEntry, split_entries
from dissector.protocol.tree import UNPARSED, ByteSource, CompressedSpan, Node
from dissector.protocol.wire import WireError, varint, varlong

PREVIEWED: Final = 80
"""Bytes that are looked at for a preview."""
_UTF_8: Final = codecs.getincrementaldecoder("utf-8")
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STRUCTS: Final = {name.upper(): each for name, each in STRUCTS.items()}


class SpanCursor:
    """The position in a source, and the end that reading may not pass."""

    def __init__(self, data: bytes, at: int, end: int, source: int) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.source = source

    def begin(self, parent: Node, name: str, kind: str) -> Node:
        """Add a node that will have children."""
        node = Node(name, parent.path_of(name), kind, self.at, self.at, source=self.source)
        parent.add(node)
        return node

    @contextmanager
    def within(self, node: Node, end: int) -> Iterator[None]:
        """Limit reading to `end`. The node ends where reading ended, also after an error."""
        outer, self.end = self.end, end
        try:
            yield
        finally:
            node.end, self.end = self.at, outer

    def leaf(self, parent: Node, name: str, kind: str, end: int, value: object, note: str = "") -> Node:
        """Add a value that ends at `end`."""
        if end > self.end:
            raise WireError(f"{name} runs past the end", self.at)
        node = self.begin(parent, name, kind)
        node.end, node.value, node.note = end, value, note
        self.at = end
        if parent.end < end:
            parent.end = end
        return node

    def fixed(self, parent: Node, name: str, kind: str, note: str = "") -> int:
        """Read a fixed-width integer."""
        layout = _STRUCTS[kind]
        end = self.at + layout.size
        if end > self.end:
            raise WireError(f"{name} runs past the end", self.at)
        value = int(layout.unpack_from(self.data, self.at)[0])
        self.leaf(parent, name, kind, end, value, note)
        return value

    def varint(self, parent: Node, name: str) -> int:
        """Read a VARINT."""
        value, end = varint(self.data, self.at)
        self.leaf(parent, name, "VARINT", end, value)
        return value

    def varlong(self, parent: Node, name: str) -> tuple[int, Node]:
        """Read a VARLONG; return it and its leaf."""
        value, end = varlong(self.data, self.at)
        return value, self.leaf(parent, name, "VARLONG", end, value)

    def blob(self, parent: Node, name: str, size: int, start: int) -> bytes | None:
        """Read bytes that begin at `start`, after their length; a negative `size` is null."""
        end = start + max(size, 0)
        if end > self.end:
            raise WireError(f"{name} runs past its record", self.at)
        raw = None if size < 0 else self.data[start:end]
        self.leaf(parent, name, "BYTES", end, raw, "" if raw is None else text_preview(raw))
        return raw

    def rest(self, parent: Node) -> int:
        """Add a leaf of the remaining bytes, if any, which no budget is charged for; return its size."""
        size = self.end - self.at
        if size > 0:
            raw = self.data[self.at : self.end]
            node = Node("(rest)", parent.path_of("(rest)"), UNPARSED, self.at, self.end, raw, source=self.source)
            parent.add(node)
            self.at = self.end
            parent.end = max(parent.end, self.end)
        return size


def text_preview(raw: bytes) -> str:
    """Return the first bytes as text in quotation marks, if they are UTF-8 text; cut text ends in an ellipsis. Line
    breaks and tabs are text, and so is what joins emoji; other control characters are not."""
    try:
        words = _UTF_8().decode(raw[:PREVIEWED], final=len(raw) <= PREVIEWED)
    except UnicodeDecodeError:
        return ""
    if _NO_TEXT.search(words):
        return ""
    return f'"{words}…"' if len(raw) > PREVIEWED else f'"{words}"'


def timestamp_note(milliseconds: int) -> str:
    """Return a Kafka timestamp as a date, if it is one."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if milliseconds >= 0 else ""


class SectionDecompressor:
    """Adds decompressed sections to the sources of a tree."""

    def __init__(self, sources: list[ByteSource], budget: DecompressionBudget) -> None:
        self._sources = sources
        self._budget = budget

    def open(
        self, codec: int, leaf: Node, data: bytes, records: Callable[[bytes], int] = lambda _plain: 0, *, magic: int = 2
    ) -> SpanCursor | None:
        """Return a cursor over the decompressed bytes of a leaf; None, after adding a finding, if that fails.

        `records` returns the number of records in the bytes, if that is known before reading them.
        """
        name = codec_name(codec)
        leaf.note = name
        try:
            plain = self._budget.decompressed(codec, data, magic=magic)
            self._budget.admit(records(plain), len(data))
        except DecompressionError as error:
            leaf.findings += (Finding("bad-compression", Severity.ERROR, f"{name}: {error}"),)
            return None
        holder = leaf.path.rpartition(".")[0]
        packed = CompressedSpan(leaf.source, leaf.start, leaf.end, codec)
        source = ByteSource(len(self._sources), f"{holder} {name}, decompressed", plain, packed)
        self._sources.append(source)
        leaf.note = f"{name}, {len(data):,} bytes hold {len(plain):,}"
        return SpanCursor(plain, 0, len(plain), source.number)

    def messages(self, plain: bytes, size: int) -> list[RecordsEntry]:
        """Return the entries of a message set that had `size` bytes compressed. Raises `DecompressionError`."""
        return self._budget.admitted(split_entries(plain), size)
