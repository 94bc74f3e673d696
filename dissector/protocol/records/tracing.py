"""Record batches as nodes: the header's fields, and the records.

A compressed section is a leaf of the frame; its decompressed bytes are a new source, whose nodes are the records.
Message sets are traced by `legacy_tracing`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from dissector.core.expansion import RUN
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.protocol.records.batch import HEADER_FIELDS, Batch
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import LEAST_RECORD, RecordsEntry, RecordsEntryKind, split_entries
from dissector.protocol.records.legacy_tracing import trace_message
from dissector.protocol.records.span_cursor import SectionDecompressor, SpanCursor, text_preview, timestamp_note
from dissector.protocol.tree import UNPARSED, ByteSource, Node
from dissector.protocol.wire import LimitError, WireError, varint

ENTRY_NODES: Final = 16
RECORD_NODES: Final = 10
HEADER_NODES: Final = 3
"""Nodes that one of them costs."""


class RecordTracer:
    """Adds the content of `records` fields to a tree, and a source for each decompressed section."""

    def __init__(self, sources: list[ByteSource], budget: DecompressionBudget) -> None:
        self.budget = budget
        self._sections = SectionDecompressor(sources, budget)

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """Add the log entries of `data[start:end]` as children of `parent`; they tile it."""
        ranges: list[tuple[int, int]] = []
        for number, part in enumerate(split_entries(data[start:end])):
            spans = SpanCursor(data, start + part.start, start + part.end, parent.source)
            try:
                self.budget.admit_nodes(ENTRY_NODES, spans.at)
            except LimitError as error:
                spans.end = end
                parent.findings += (over_limit(error, spans.rest(parent)),)
                break
            if part.kind is RecordsEntryKind.BATCH:
                node = spans.begin(parent, f"[{number}]", "RECORD_BATCH")
                batch = Batch.read(data[spans.at : spans.end])
                self._batch(spans, batch, node)
                ranges.append((batch.base_offset, batch.base_offset + batch.last_offset_delta))
            elif part.kind is RecordsEntryKind.MESSAGE:
                node = spans.begin(parent, f"[{number}]", "MESSAGE")
                trace_message(spans, node, self._sections)
            else:
                node = spans.begin(parent, f"[{number}]", UNPARSED)
                node.value, node.note = data[spans.at : spans.end], _part_note(part)
                if part.kind is RecordsEntryKind.UNKNOWN:
                    message = "not a record batch: magic or length make no sense"
                    node.findings += (Finding("bad-batch", Severity.ERROR, message),)
            node.end = spans.end
        parent.findings += tuple(
            Finding("inconsistent-batch", Severity.WARNING, words) for words in order_faults(ranges)
        )

    def _batch(self, spans: SpanCursor, batch: Batch, node: Node) -> None:
        for name, kind, _ in HEADER_FIELDS:
            spans.fixed(node, name, kind, _header_note(name, batch))
        if not batch.crc_valid:
            message = "CRC-32C is not that of the bytes: the batch was damaged or changed"
            node.children[4].findings += (Finding("bad-crc", Severity.ERROR, message),)
        node.note = f"{counted(batch.records_count, 'record')} {batch.compression}"
        if batch.is_masked:
            spans.leaf(
                node, _section_name(batch), "BYTES", spans.end, batch.section
            ).note = "masked: --show-secrets shows it"
            return
        if batch.codec == 0:
            _records(spans, batch, node, self.budget)
            return
        leaf = spans.leaf(node, "(compressed)", "BYTES", spans.end, batch.section)
        inner = self._sections.open(batch.codec, leaf, batch.section, batch.most_records)
        if inner is not None:
            RUN.take_records(len(batch.section), batch.most_records(inner.data))
            _records(inner, batch, node, self.budget)


class OpaqueRecords(RecordTracer):
    """Leaves records one field, for whoever looks at what is around them."""

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """Add nothing under `parent`, whose span covers the records."""


def over_limit(error: Exception, size: int) -> Finding:
    """Return the finding for `size` bytes that were not read because of a limit."""
    return Finding("over-limit", Severity.WARNING, f"{error}: {counted(size, 'byte')} left out")


def _section_name(batch: Batch) -> str:
    """The name of a masked section's leaf."""
    return "(compressed)" if batch.codec else "(masked)"


def _records(spans: SpanCursor, batch: Batch, node: Node, budget: DecompressionBudget) -> None:
    """Add `records` to the batch; bytes that are not records become a leaf."""
    holder = spans.begin(node, "records", "RECORDS")
    walker = _RecordWalker(spans, batch, budget)
    count = batch.records_count
    try:
        if batch.codec == 0:
            budget.admit(batch.most_records(batch.section), len(batch.section))
        if count < 0 or count * LEAST_RECORD > spans.end - spans.at:
            raise WireError(f"{count:,} records can't be in {counted(spans.end - spans.at, 'byte')}", spans.at)
        for number in range(count):
            walker.record(number, holder)
    except (LimitError, DecompressionError) as error:
        holder.findings += (over_limit(error, spans.end - spans.at),)
    except WireError as error:
        holder.findings += (Finding("bad-record", Severity.ERROR, str(error)),)
    else:
        faults = batch_faults(batch, walker.offsets, walker.timestamps)
        node.findings += tuple(Finding("inconsistent-batch", Severity.WARNING, words) for words in faults)
    rest = spans.rest(holder)
    holder.end = spans.end
    if rest and not holder.findings:
        holder.findings += (Finding("bad-record", Severity.ERROR, f"{counted(rest, 'byte')} after the last record"),)


class _RecordWalker:
    """Reads the records of one decompressed section, a node per field; collects what the header is compared with."""

    def __init__(self, spans: SpanCursor, batch: Batch, budget: DecompressionBudget) -> None:
        self._spans = spans
        self._batch = batch
        self._budget = budget
        self.offsets: list[int] = []
        self.timestamps: list[int] = []

    def record(self, number: int, parent: Node) -> None:
        spans = self._spans
        self._budget.admit_nodes(RECORD_NODES, spans.at)
        node = spans.begin(parent, f"[{number}]", "RECORD")
        size = spans.varint(node, "(length)")
        end = spans.at + size
        if size < 0 or end > spans.end:
            raise WireError(f"record {number} runs past its section", spans.at)
        with spans.within(node, end):
            self._fields(node)
            if spans.at != end:
                raise WireError(f"record {number} is longer than its fields", spans.at)

    def _fields(self, node: Node) -> None:
        spans, batch = self._spans, self._batch
        spans.fixed(node, "attributes", "INT8")
        delta, leaf = spans.varlong(node, "timestamp_delta")
        timestamp = batch.max_timestamp if batch.is_append_time else batch.base_timestamp + delta
        leaf.note = timestamp_note(timestamp)
        delta = spans.varint(node, "offset_delta")
        node.children[-1].note = f"offset {batch.base_offset + delta}"
        key = spans.blob(node, "key", *varint(spans.data, spans.at))
        spans.blob(node, "value", *varint(spans.data, spans.at))
        node.note = f"offset {batch.base_offset + delta}" + (f" key {text_preview(key)}" if key else "")
        self._headers(node)
        self.offsets.append(delta)
        self.timestamps.append(timestamp)

    def _headers(self, node: Node) -> None:
        spans = self._spans
        headers = spans.begin(node, "headers", "ARRAY")
        count = spans.varint(headers, "(count)")
        if count < 0 or count * 2 > spans.end - spans.at:
            raise WireError("header count runs past its record", spans.at)
        self._budget.admit_parts(count, spans.at)
        self._budget.admit_nodes(HEADER_NODES * count, spans.at)
        with spans.within(headers, spans.end):
            for number in range(count):
                header = spans.begin(headers, f"[{number}]", "HEADER")
                self._key(header)
                spans.blob(header, "value", *varint(spans.data, spans.at))

    def _key(self, header: Node) -> None:
        spans = self._spans
        size, start = varint(spans.data, spans.at)
        if size < 0:
            raise WireError("header without a key", spans.at)
        words = spans.data[start : start + size].decode("utf-8", "surrogateescape")
        spans.leaf(header, "key", "STRING", start + size, words)


def _part_note(part: RecordsEntry) -> str:
    size = counted(part.end - part.start, "byte")
    if part.kind is RecordsEntryKind.TRUNCATED:
        return f"truncated batch, {size} (cut off by the size limit of the fetch: normal)"
    return f"unknown, {size}"


def _header_note(name: str, batch: Batch) -> str:
    if name == "attributes":
        words = [batch.compression, batch.timestamp_type]
        words += ["transactional"] if batch.is_transactional else []
        words += ["control"] if batch.is_control else []
        words += ["base_timestamp is the delete horizon"] if batch.has_delete_horizon else []
        return ", ".join(words)
    if name == "crc":
        return "valid" if batch.crc_valid else "INVALID"
    if name.endswith("_timestamp"):
        return timestamp_note(getattr(batch, name))
    return ""


def batch_faults(batch: Batch, offsets: Sequence[int], timestamps: Sequence[int]) -> Iterator[str]:
    """Yield faults of one batch; `offsets` are deltas, `timestamps` absolute.

    Compaction removes records and keeps the header's last offset and times: only records outside them are a fault.
    """
    if any(after <= before for before, after in pairwise(offsets)):
        yield "offsets of records do not increase"
    if offsets and not 0 <= min(offsets) <= max(offsets) <= batch.last_offset_delta:
        yield f"offset deltas {min(offsets)} to {max(offsets)} are outside 0 to {batch.last_offset_delta}"
    if timestamps and max(timestamps) > batch.max_timestamp:
        yield f"a record's timestamp {max(timestamps)} is past max_timestamp {batch.max_timestamp}"
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or (batch.base_sequence < 0 and not batch.is_control)):
        yield f"producer {batch.producer_id} without an epoch or a sequence"


def order_faults(ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield faults between the batches of one field; `ranges` are their first and last offsets."""
    for number, (before, after) in enumerate(pairwise(ranges), start=1):
        if after[0] <= before[1]:
            yield f"batch [{number}] begins at offset {after[0]}, the one before ends at {before[1]}"
