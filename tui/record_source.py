"""The TLS records behind a message, as one more source of its bytes: the parts of each as fields, and where the bytes
of the message are in them. Without a screen.

Invariants:
  * the leaves of the tree tile the source, as those of every source do (`protocol.tree`);
  * a byte of the message is encrypted in one byte of the source, if its record was captured.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from dissector.protocol.tree import ByteSource, Node
from dissector.tls.handshake import VERSION_NAMES
from dissector.tls.record_parts import CIPHERTEXT, TlsRecord

NAME: Final = "TLS records"
RECORD_SHADE, FIELD_SHADE = 2, 0
"""Shades of the records of a field, and of its own bytes in them."""
PART_COLORS: Final = 2
"""In which parts other than the ciphertext alternate."""
_HEADER_FIELDS: Final = (("content_type", "UINT8", 1), ("version", "UINT16", 2), ("length", "UINT16", 2))


class RecordSource:
    """One or more records, one behind the other, as source `number`. `most` counts the bytes of the message from its
    first one on that are known to be where they were sent."""

    def __init__(self, number: int, records: Sequence[TlsRecord], most: int) -> None:
        self.source = ByteSource(number, NAME, b"".join(record.data for record in records))
        self._records = records
        self._most = most
        self._starts: list[int] = []
        """Where each record begins in the source."""
        self._texts: list[int] = []
        """Where the ciphertext of each begins."""
        self._parts: list[int] = []
        """Where each part of all records begins."""
        at = 0
        for record in records:
            self._parts += [at + part.start for part in record.parts]
            self._starts.append(at)
            self._texts.append(at + next(part.start for part in record.parts if part.name == CIPHERTEXT))
            at += len(record.data)
        names = [part.name for record in records for part in record.parts]
        self._colors = [None if name == CIPHERTEXT else n % PART_COLORS for n, name in enumerate(names)]
        nodes = [self._record_node(index) for index in range(len(records))]
        self.tree = nodes[0]
        """All records, or the only one."""
        if len(nodes) > 1:
            self.tree = self._node("(TLS records)", 0, at, f"{len(nodes):,}, {self._packets(0, len(nodes))}")
            self.tree.children = nodes

    def words(self, start: int, end: int) -> str:
        """Return which records bytes of the source are in, and which packets these came in."""
        first, stop = bisect_right(self._starts, start) - 1, bisect_left(self._starts, max(end, start + 1))
        return self._words(first, stop)

    def words_of_message(self, start: int, end: int) -> str:
        """The same for bytes of the message; empty where they are in none of the records."""
        first, stop = self._of_message(start, end)
        return self._words(first, stop) if first < stop else ""

    def marks(self, start: int, end: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and shade of what bytes `start` to `end` of the message are in: their records, then their
        ciphertext. Only for records with bytes from `low` to `high` of the source."""
        first, stop = self._of_message(start, end)
        shown = range(max(first, bisect_right(self._starts, low) - 1), min(stop, bisect_left(self._starts, high)))
        for index in shown:
            begin = self._starts[index]
            yield begin, begin + len(self._records[index].data), RECORD_SHADE
            yield (*self._ciphertext(index, start, end), FIELD_SHADE)

    def first_byte(self, start: int, end: int) -> int:
        """Return where in the source bytes of the message begin; 0 where they are in none of the records."""
        first, stop = self._of_message(start, end)
        return self._ciphertext(first, start, end)[0] if first < stop else 0

    def message_byte(self, offset: int) -> int | None:
        """Return which byte of the message a byte of the source is, encrypted; None for other bytes."""
        index = bisect_right(self._starts, offset) - 1
        record, at = self._records[index], offset - self._texts[index]
        byte = record.start + at
        return byte if 0 <= at < record.size and 0 <= byte < self._most else None

    def part_color(self, offset: int) -> int | None:
        """Return the number of a color that sets the part of a byte apart from those beside it; None for ciphertext."""
        return self._colors[bisect_right(self._parts, offset) - 1]

    def _ciphertext(self, index: int, start: int, end: int) -> tuple[int, int]:
        """Return the bytes of a record that have bytes of the message."""
        record, text = self._records[index], self._texts[index]
        low, high = max(start, record.start), min(end, record.start + record.size)
        return text + low - record.start, text + max(low, high) - record.start

    def _of_message(self, start: int, end: int) -> tuple[int, int]:
        """Return the first record with bytes of the message, and the one behind the last."""
        start, end = min(start, self._most), min(max(end, start + 1), self._most)
        first = bisect_right(self._records, start, key=lambda record: record.start + record.size)
        return first, max(first, bisect_left(self._records, end, key=lambda record: record.start))

    def _words(self, first: int, stop: int) -> str:
        count, packets = len(self._records), self._packets(first, stop)
        if count == 1:
            return f"TLS record · {packets}"
        which = f"TLS record {first + 1}" if stop == first + 1 else f"TLS records {first + 1}–{stop}"
        return f"{which} of {count:,} · {packets}"

    def _packets(self, first: int, stop: int) -> str:
        numbers = dict.fromkeys(each + 1 for record in self._records[first:stop] for each in record.packets)
        low, high = min(numbers), max(numbers)
        if len(numbers) == 1:
            return f"packet {low}"
        return f"packets {low}–{high}" if high - low < len(numbers) else f"{len(numbers):,} packets, {low}–{high}"

    def _record_node(self, index: int) -> Node:
        record, at = self._records[index], self._starts[index]
        name = f"(record {index + 1})" if len(self._records) > 1 else "(TLS record)"
        node = self._node(name, at, at + len(record.data), self._packets(index, index + 1))
        for part in record.parts:
            child = self._node(f"({part.name})", at + part.start, at + part.end, path=node.path)
            if part.start:
                child.value = record.data[part.start : part.end]
            else:
                child.children = list(self._header_fields(child))
            node.add(child)
        return node

    def _header_fields(self, header: Node) -> Iterator[Node]:
        """Yield the fields of a record's header (RFC 8446, 5.1). What has a key is sent as of TLS 1.2 by TLS 1.3."""
        at = header.start
        for name, kind, size in _HEADER_FIELDS:
            node = self._node(f"({name})", at, at + size, path=header.path)
            node.type, number = kind, int.from_bytes(self.source.data[at : at + size], "big")
            node.value = number
            node.note = {"content_type": "application data", "version": VERSION_NAMES.get(number, "")}.get(name, "")
            at += size
            yield node

    def _node(self, name: str, start: int, end: int, note: str = "", path: str = "") -> Node:
        return Node(name, f"{path}.{name}" if path else name, "BYTES", start, end, note=note, source=self.source.number)
