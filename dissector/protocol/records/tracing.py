"""Record batches as nodes: the header's fields, the records, and the plain bytes of compressed sections.

A compressed section is a leaf of the frame; what it becomes is a source of its own, whose nodes hang under that leaf.
"""

import struct
from datetime import UTC, datetime

from dissector.findings import Finding, Severity
from dissector.protocol.records.batch import HEADER_FIELDS, LEAST_RECORD, Batch, Part, PartKind, split
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.tree import UNPARSED, Node, Source
from dissector.protocol.wire import WireError, varint, varlong

_CODES = {"INT64": ">q", "INT32": ">i", "UINT32": ">I", "INT16": ">h", "INT8": ">b"}
_NAMES = {PartKind.MESSAGE_SET: "message set", PartKind.TRUNCATED: "truncated batch", PartKind.UNKNOWN: "unknown"}


def timestamp_note(milliseconds: int) -> str:
    """A Kafka timestamp as a date, where it is one."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if milliseconds >= 0 else ""


class RecordTracer:
    """Hangs the content of `records` fields into a tree, adding a source for each decompressed section."""

    def __init__(self, sources: list[Source], limit: int) -> None:
        self._sources = sources
        self._limit = limit

    def field(self, data: bytes, start: int, end: int, parent: Node) -> None:
        """The parts of `data[start:end]`, as children of `parent`, which tile it."""
        for number, part in enumerate(split(data[start:end])):
            node = Node(f"[{number}]", f"{parent.path}[{number}]", "RECORD_BATCH", start + part.start, start + part.end)
            parent.children.append(node)
            if part.kind is PartKind.BATCH:
                self._batch(data, node)
            else:
                node.type, node.note = UNPARSED, _part_note(part)
                node.value = data[node.start : node.end]
                if part.kind is PartKind.UNKNOWN:
                    message = "not a record batch: magic or length make no sense"
                    node.findings.append(Finding("bad-batch", Severity.ERROR, message))

    def _batch(self, data: bytes, node: Node) -> None:
        batch = Batch.read(data[node.start : node.end])
        at = node.start
        for name, kind, size in HEADER_FIELDS:
            (value,) = struct.unpack_from(_CODES[kind], data, at)
            leaf = Node(name, node.path_of(name), kind, at, at + size, value)
            leaf.note = _header_note(name, batch)
            node.children.append(leaf)
            at += size
        if not batch.crc_valid:
            message = "CRC-32C is not that of the bytes: the batch was damaged or changed"
            node.children[4].findings.append(Finding("bad-crc", Severity.ERROR, message))
        node.note = f"{batch.records_count} records {batch.compression}"
        self._section(data, at, batch, node)

    def _section(self, data: bytes, at: int, batch: Batch, node: Node) -> None:
        if batch.codec == 0:
            self._records(data, at, node.end, 0, batch, node)
            return
        leaf = Node("(compressed)", f"{node.path}.(compressed)", "BYTES", at, node.end, data[at : node.end])
        leaf.note = batch.compression
        node.children.append(leaf)
        try:
            plain = batch.decompressed(self._limit)
        except DecompressionError as error:
            leaf.findings.append(Finding("bad-compression", Severity.ERROR, f"{batch.compression}: {error}"))
            return
        source = Source(len(self._sources), f"{node.path} {batch.compression}, decompressed", plain)
        self._sources.append(source)
        leaf.note = f"{batch.compression}, {leaf.size:,} bytes hold {len(plain):,}"
        self._records(plain, 0, len(plain), source.number, batch, node)

    def _records(self, data: bytes, at: int, end: int, source: int, batch: Batch, node: Node) -> None:
        """Hang `records` under the batch; bytes that are none end up in a leaf of their own."""
        holder = Node("records", f"{node.path}.records", "RECORDS", at, end, source=source)
        node.children.append(holder)
        walker = _RecordWalker(data, at, end, source, batch)
        count = batch.records_count
        try:
            if count < 0 or count * LEAST_RECORD > end - at:
                raise WireError(f"{count:,} records can't be in {end - at:,} bytes", at)
            for number in range(count):
                walker.record(number, holder)
        except WireError as error:
            holder.findings.append(Finding("bad-record", Severity.ERROR, str(error)))
        if walker.at < end:
            rest = data[walker.at : end]
            path = f"{holder.path}.(rest)"
            holder.children.append(Node("(rest)", path, UNPARSED, walker.at, end, rest, source=source))
            if not holder.findings:
                message = f"{len(rest)} bytes after the last record"
                holder.findings.append(Finding("bad-record", Severity.ERROR, message))


class _RecordWalker:
    """Reads records of one plain section, a node a field."""

    def __init__(self, data: bytes, at: int, end: int, source: int, batch: Batch) -> None:
        self._data = data
        self._end = end
        self._source = source
        self._batch = batch
        self.at = at

    def _leaf(self, parent: Node, name: str, kind: str, end: int, value: object, note: str = "") -> None:
        if end > self._end:
            raise WireError(f"{name} runs past the end", self.at)
        parent.children.append(Node(name, parent.path_of(name), kind, self.at, end, value, note, source=self._source))
        self.at = parent.end = end

    def _varint(self, parent: Node, name: str) -> int:
        value, end = varint(self._data, self.at)
        self._leaf(parent, name, "VARINT", end, value)
        return value

    def record(self, number: int, parent: Node) -> None:
        path = f"{parent.path}[{number}]"
        node = Node(f"[{number}]", path, "RECORD", self.at, self.at, source=self._source)
        parent.children.append(node)
        section_end = self._end
        size = self._varint(node, "(length)")
        if size < 0 or size > section_end - self.at:
            raise WireError(f"record {number} runs past its section", self.at)
        end = self._end = self.at + size
        try:
            self._fields(node)
            if self.at != end:
                raise WireError(f"record {number} is longer than its fields", self.at)
        finally:
            node.end, self._end = self.at, section_end

    def _fields(self, node: Node) -> None:
        batch = self._batch
        if self.at >= self._end:
            raise WireError("record ends before its attributes", self.at)
        (attributes,) = struct.unpack_from(">b", self._data, self.at)
        self._leaf(node, "attributes", "INT8", self.at + 1, attributes)
        delta, end = varlong(self._data, self.at)
        note = timestamp_note(batch.max_timestamp if batch.attributes & 0x08 else batch.base_timestamp + delta)
        self._leaf(node, "timestamp_delta", "VARLONG", end, delta, note)
        delta, end = varint(self._data, self.at)
        self._leaf(node, "offset_delta", "VARINT", end, delta, f"offset {batch.base_offset + delta}")
        key = self._blob(node, "key")
        self._blob(node, "value")
        node.note = f"offset {batch.base_offset + delta}" + (f" key {_shown(key)}" if key else "")
        self._headers(node)

    def _blob(self, node: Node, name: str, *, as_text: bool = False) -> bytes | None:
        size, start = varint(self._data, self.at)
        end = start + max(size, 0)
        if end > self._end:
            raise WireError(f"{name} runs past its record", self.at)
        raw = None if size < 0 else self._data[start:end]
        value: object = raw.decode("utf-8", "surrogateescape") if raw is not None and as_text else raw
        kind = "STRING" if as_text else "BYTES"
        self._leaf(node, name, kind, end, value, "" if raw is None or as_text else _shown(raw))
        return raw

    def _headers(self, node: Node) -> None:
        headers = Node("headers", f"{node.path}.headers", "ARRAY", self.at, self.at, source=self._source)
        node.children.append(headers)
        count = self._varint(headers, "(count)")
        if count < 0 or count * 2 > self._end - self.at:
            raise WireError("header count runs past its record", self.at)
        try:
            for number in range(count):
                self._header(headers, f"[{number}]")
        finally:
            headers.end = self.at

    def _header(self, headers: Node, name: str) -> None:
        header = Node(name, headers.path_of(name), "HEADER", self.at, self.at, source=self._source)
        headers.children.append(header)
        if self._blob(header, "key", as_text=True) is None:
            raise WireError("header without a key", self.at)
        self._blob(header, "value")


def _shown(raw: bytes) -> str:
    """The first bytes as text, where they are text."""
    words = raw[:40].decode("utf-8", "replace")
    return f'"{words}"' if words.isprintable() and "\ufffd" not in words else ""


def _part_note(part: Part) -> str:
    reason = " (cut off by the size limit of the fetch: normal)" if part.kind is PartKind.TRUNCATED else ""
    return f"{_NAMES[part.kind]}, {part.end - part.start:,} bytes{reason}"


def _header_note(name: str, batch: Batch) -> str:
    if name == "attributes":
        words = [batch.compression, batch.timestamp_type]
        words += ["transactional"] if batch.is_transactional else []
        words += ["control"] if batch.is_control else []
        return ", ".join(words)
    if name == "crc":
        return "valid" if batch.crc_valid else "INVALID"
    if name.endswith("_timestamp"):
        return timestamp_note(getattr(batch, name))
    return ""
