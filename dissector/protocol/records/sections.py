"""Decompresses the sections of one frame: each becomes a new source of the tree, within a common budget."""

from collections.abc import Callable

from dissector.core.finding import Finding, Severity
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError, codec_name
from dissector.protocol.records.entries import RecordsEntry, split_entries
from dissector.protocol.records.span_cursor import SpanCursor
from dissector.protocol.tree import ByteSource, CompressedSpan, Node


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
            leaf.findings.append(Finding("bad-compression", Severity.ERROR, f"{name}: {error}"))
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
