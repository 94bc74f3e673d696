"""Messages of magic 0 and 1 as nodes. The messages of a wrapper are its children, in a separate source."""

from dissector.core.finding import Finding, Severity
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import RecordsEntry, RecordsEntryKind
from dissector.protocol.records.legacy import DEEPEST, HEADER_FIELDS, LegacyRecord, first_offset
from dissector.protocol.records.span_cursor import SectionDecompressor, SpanCursor, text_preview, timestamp_note
from dissector.protocol.tree import Node
from dissector.protocol.wire import WireError


def trace_message(spans: SpanCursor, node: Node, sections: SectionDecompressor, base: int = 0, depth: int = 0) -> None:
    """Add the fields of one message, which is all of `spans`. Its offset is relative to `base`; its leaves tile it."""
    try:
        message = LegacyRecord.read(spans.data[spans.at : spans.end])
    except WireError as error:
        node.findings += (Finding("bad-record", Severity.ERROR, str(error)),)
        spans.rest(node)
        return
    for name, kind, _ in HEADER_FIELDS:
        spans.fixed(node, name, kind, _header_note(name, message, base))
    if not message.crc_valid:
        words = "CRC-32 is not that of the bytes: the message was damaged or changed"
        node.children[2].findings += (Finding("bad-crc", Severity.ERROR, words),)
    if message.timestamp is not None:
        spans.fixed(node, "timestamp", "INT64", timestamp_note(message.timestamp))
    _blob(spans, node, "key")
    node.note = f"offset {base + message.offset}" + (f" key {text_preview(message.key)}" if message.key else "")
    if not message.codec:
        _blob(spans, node, "value")
        return
    node.note = f"offset {base + message.offset}, wrapper, {message.compression}"
    leaf = _compressed(spans, node)
    if depth == DEEPEST:
        leaf.findings += (Finding("bad-compression", Severity.ERROR, f"more than {DEEPEST} wrappers in each other"),)
    elif (inner := sections.open(message.codec, leaf, message.value or b"", magic=message.magic)) is not None:
        _messages(inner, message, base, node, sections, depth)


def _messages(
    spans: SpanCursor, wrapper: LegacyRecord, base: int, node: Node, sections: SectionDecompressor, depth: int
) -> None:
    """Add the messages of a wrapper."""
    holder = spans.begin(node, "messages", "MESSAGE_SET")
    try:
        parts = sections.messages(spans.data, len(wrapper.value or b""))
    except DecompressionError as error:
        holder.findings += (Finding("bad-compression", Severity.ERROR, f"{wrapper.compression}: {error}"),)
        spans.rest(holder)
        return
    first = first_offset(base + wrapper.offset, [_offset(spans.data, part) for part in parts]) if wrapper.magic else 0
    for number, part in enumerate(parts):
        inner = SpanCursor(spans.data, part.start, part.end, spans.source)
        if part.kind is RecordsEntryKind.MESSAGE:
            child = inner.begin(holder, f"[{number}]", "MESSAGE")
            trace_message(inner, child, sections, first, depth + 1)
            child.end = part.end
        else:
            inner.rest(holder)
            holder.findings += (Finding("bad-record", Severity.ERROR, f"not a message: {part.kind.value}"),)
    holder.end = spans.end


def _offset(data: bytes, part: RecordsEntry) -> int:
    return int.from_bytes(data[part.start : part.start + 8], "big", signed=True)


def _compressed(spans: SpanCursor, node: Node) -> Node:
    """Add a wrapper's value, its length and its bytes as separate nodes."""
    value = spans.begin(node, "value", "BYTES")
    spans.fixed(value, "(size)", "INT32")
    leaf = spans.leaf(value, "(compressed)", "BYTES", spans.end, spans.data[spans.at : spans.end])
    value.end = spans.end
    return leaf


def _blob(spans: SpanCursor, node: Node, name: str) -> None:
    size = int.from_bytes(spans.data[spans.at : spans.at + 4], "big", signed=True)
    spans.blob(node, name, size, spans.at + 4)


def _header_note(name: str, message: LegacyRecord, base: int) -> str:
    if name == "offset" and base:
        return f"relative: offset {base + message.offset}"
    if name == "attributes":
        return ", ".join(word for word in (message.compression, message.timestamp_type) if word)
    return ("valid" if message.crc_valid else "INVALID") if name == "crc" else ""
