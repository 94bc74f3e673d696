"""Redacts frames of ordinary traffic without a tree: from the places of their texts, bytes and records.

Invariant: what is redacted here is, byte for byte, what `Redactor` makes of the frame's tree, and the names that are
learned here are those of its tree, if that has all of the frame (`tests/export/redaction/test_plain_frames.py`). A
frame with anything that needs a closer look is left to the tree: formats inside of bytes, records of Kafka's own topics
or with what may be a secret, entries that are no batch of today's, what is damaged, a piece of a name in a number.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import google_crc32c

from dissector.bulk.message_texts import MessageTexts
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.pseudonyms import MASK
from dissector.export.redaction.remnants import PIECE, RUN
from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, StructPlan, TypePlan, plan
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.codec.reader import text
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.topics import CLUSTER_METADATA_ID, INTERNAL_TOPICS, RECORDS_FIELDS
from dissector.protocol.kernel.secret_marks import secret_marks
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.records.batch import CRC_FROM, HEADER, Batch
from dissector.protocol.records.columns import section_columns
from dissector.protocol.records.compress_to_size import Span, compress_to_size
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.tree import Node
from dissector.protocol.wire import uuid_text

_OF_THE_LOG: Final = frozenset(("FetchSnapshotResponse",))
KEPT_TOGETHER: Final = 1 << 20
"""Bytes that are searched for pieces of names together: in a frame alone, most of the time goes into the call."""
BESIDE: Final = PIECE - 1
"""Bytes on each side of an edge that a piece of a name over it may have."""
_CRC: Final = slice(CRC_FROM - 4, CRC_FROM)


class _Section(NamedTuple):
    """A batch of a frame, and its records."""

    batch: Batch
    start: int
    """Offset of its section in the frame."""
    plain: bytes
    contents: list[Span]
    """Keys, values and values of headers in the plain section that are not empty, in order."""
    keys: list[Span]
    """Keys of headers that are not empty."""


class _TextNode(NamedTuple):
    """What the values of one column of a program are."""

    type: str
    node: Node
    """A leaf as trees have it, of no bytes."""


class PlainFrames:
    """Learns the names of plain messages, and redacts them. `topic_names` are names by topic id."""

    def __init__(self, redactor: Redactor, topic_names: Mapping[str, str]) -> None:
        self._redactor = redactor
        self._topic_names = topic_names
        self._fields: dict[tuple[MessageLayout, int], _TextNode] = {}
        self._texts: dict[tuple[int, bytes], bytes] = {}
        """Replacements by the identity of their leaf's node, which `_fields` keeps."""
        self._next: deque[MessageTexts] = deque()
        self._works: dict[int, _FrameWork | None] = {}
        """What is prepared, by the identity of messages that are alive; None for those that are for the tree."""
        self._header_key = Node("key", "records.headers.key", "STRING", 0, 0)

    def learn(self, message: MessageTexts) -> bool:
        """Learn the names in a message; False if that is for the tree."""
        sections = self._sections(message)
        if sections is None:
            return False
        learn, data = self._redactor.remnants.learn_name, message.data
        for column, start, size in message.places:
            kind = self._field(message, column).type
            if size > 0 and kind in ("string", "bytes"):
                learn(data[start : start + size], is_text=kind == "string")
        for section in sections:
            if section.batch.codec:
                learn(section.batch.section, is_text=False)
            for begin, end in section.contents:
                learn(section.plain[begin:end], is_text=False)
            for begin, end in section.keys:
                learn(section.plain[begin:end], is_text=True)
        return True

    def begin(self, messages: Sequence[MessageTexts]) -> None:
        """Get ready for messages that are redacted next, in this order."""
        self._next = deque(messages)
        self._works.clear()

    def redacted(self, message: MessageTexts) -> bytes | None:
        """Return the redacted frame of a message; None if that is for the tree."""
        if id(message) not in self._works:
            self._prepare(message)
        work = self._works.pop(id(message))
        if work is None:
            return None
        out = work.out
        for each in reversed(work.packed):
            if not self._write(each.out, [(begin, end - begin, self._header_key) for begin, end in each.section.keys]):
                return None
            self._pack(each, out)
        if not self._write(out, sorted(work.texts, key=lambda place: place[0])):
            return None
        for section in work.sections:
            if section.batch.crc_valid:
                first = section.start - HEADER.size
                body = bytes(out[first + CRC_FROM : section.start + len(section.batch.section)])
                out[first + _CRC.start : first + _CRC.stop] = google_crc32c.value(body).to_bytes(4, "big")
        return bytes(out)

    def _prepare(self, message: MessageTexts) -> None:
        """Mask a message, and some of those that are next, and look for pieces of names in all of them together."""
        some, works, room = [message], list[_FrameWork | None](), KEPT_TOGETHER
        if any(each is message for each in self._next):
            while self._next.popleft() is not message:
                pass
        while some:
            work = self._work(some[-1])
            works.append(work)
            room -= sum(map(len, work.kept)) if work else 0
            if room <= 0 or not self._next:
                break
            some.append(self._next.popleft())
        parts = [part for work in works if work for part in work.kept]
        is_guess = any(each.layout.findings for each in some)
        with_pieces = self._redactor.remnants.parts_with_pieces(parts, PIECE if is_guess else RUN)
        at = 0
        for each, work in zip(some, works, strict=True):
            count = len(work.kept) if work else 0
            has_piece = any(number in with_pieces for number in range(at, at + count))
            self._works[id(each)] = None if has_piece else work
            at += count
            if work:
                work.kept.clear()

    def _work(self, message: MessageTexts) -> "_FrameWork | None":
        """Return a message with what it carries masked; None if it is for the tree."""
        sections = self._sections(message)
        if sections is None:
            return None
        out, kept = bytearray(message.data), bytearray(message.data)
        texts: list[tuple[int, int, Node]] = []
        for column, start, size in message.places:
            kind, node = self._field(message, column)
            if size <= 0 or kind in ("uuid", "records"):
                continue
            kept[start : start + size] = bytes(size)
            if kind == "bytes":
                out[start : start + size] = MASK * size
            else:
                texts.append((start, size, node))
        packed = [_PackedSection(each) for each in sections if each.batch.codec]
        for section in sections:
            start, size = section.start, len(section.batch.section)
            if section.batch.codec:
                kept[start : start + size] = bytes(size)
                continue
            _mask(section, out, kept, start)
            texts += ((start + begin, end - begin, self._header_key) for begin, end in section.keys)
        return _FrameWork(sections, out, texts, packed, [kept, *(each.kept for each in packed)])

    def _pack(self, packed: "_PackedSection", out: bytearray) -> None:
        batch, start = packed.section.batch, packed.section.start
        found = compress_to_size(batch.codec, bytes(packed.out), batch.section, sorted(packed.section.contents))
        self._redactor.lost += found is None
        size = len(batch.section)
        out[start : start + size] = bytes(size) if found is None else found

    def _write(self, out: bytearray, texts: Sequence[tuple[int, int, Node]]) -> bool:
        """Replace texts in their places; False if one makes a piece of a name with what is beside it."""
        known = self._texts
        for start, size, node in texts:
            raw = bytes(out[start : start + size])
            new = known.get((id(node), raw))
            if new is None:
                new = known[id(node), raw] = self._redactor.text(node, text(raw))
            out[start : start + size] = new
        return not any(
            self._redactor.remnants.has_piece(bytes(out[max(0, edge - BESIDE) : edge + BESIDE]))
            for start, size, _ in texts
            for edge, at in ((start, start - 1), (start + size, start + size))
            if at < len(out) and out[at] >= ord(" ")
        )

    def _field(self, message: MessageTexts, number: int) -> _TextNode:
        key = message.layout, number
        found = self._fields.get(key)
        if found is None:
            found = self._fields[key] = _field_of(message.layout, message.program.columns[number])
        return found

    def _sections(self, message: MessageTexts) -> list[_Section] | None:
        """Return the batches of a message; None if it is for the tree."""
        layout, data = message.layout, message.data
        is_whole = int.from_bytes(data[:PREFIX], "big") == len(data) - PREFIX
        if not is_whole or layout.body in FORMATS or layout.body in _OF_THE_LOG or layout.unread:
            return None
        if layout.body not in RECORDS_FIELDS:
            return []
        budget, found = frame_budget(), list[_Section]()
        is_internal = False
        for column, start, size in message.places:
            kind = self._field(message, column).type
            if kind == "uuid":
                is_internal |= self._is_internal(uuid_text(data[start : start + 16]))
            elif kind == "string":
                is_internal |= text(data[start : start + max(0, size)]) in INTERNAL_TOPICS
            elif kind == "records" and size > 0:
                some = _batches(data, start, start + size, budget)
                if some is None:
                    return None
                found += some
        return None if found and is_internal else found

    def _is_internal(self, topic_id: str) -> bool:
        return topic_id == CLUSTER_METADATA_ID or self._topic_names.get(topic_id, "") in INTERNAL_TOPICS


class _FrameWork(NamedTuple):
    """A message that is masked, but for its texts."""

    sections: list[_Section]
    out: bytearray
    texts: list[tuple[int, int, Node]]
    """Start, size and leaf of each."""
    packed: list["_PackedSection"]
    kept: list[bytearray]
    """The bytes that are still the original's, 0 in place of the others, until they are searched for names."""


class _PackedSection:
    """A compressed section while it is redacted."""

    def __init__(self, section: _Section) -> None:
        self.section = section
        self.out = bytearray(section.plain)
        self.kept = bytearray(section.plain)
        _mask(section, self.out, self.kept, 0)


def _mask(section: _Section, out: bytearray, kept: bytearray, start: int) -> None:
    """Mask the contents of a section that begins at `start`; they and the keys of headers are not kept."""
    for begin, end in section.contents:
        out[start + begin : start + end] = MASK * (end - begin)
        kept[start + begin : start + end] = bytes(end - begin)
    for begin, end in section.keys:
        kept[start + begin : start + end] = bytes(end - begin)


def _batches(data: bytes, start: int, end: int, budget: DecompressionBudget) -> list[_Section] | None:
    """Return the batches of a `records` field; None if one is for the tree."""
    found: list[_Section] = []
    for part in split_entries(data[start:end]):
        if part.kind is not RecordsEntryKind.BATCH:
            return None
        batch = Batch.read(data[start + part.start : start + part.end])
        section = None if batch.is_control or batch.is_masked else _section(batch, start + part.start, budget)
        if section is None:
            return None
        found.append(section)
    return found


def _section(batch: Batch, at: int, budget: DecompressionBudget) -> _Section | None:
    """Return the records of a batch at an offset of its frame; None if they are for the tree."""
    try:
        plain = budget.decompressed(batch.codec, batch.section)
        budget.admit(batch.most_records(plain), len(batch.section))
    except DecompressionError:
        return None
    if secret_marks().is_near(plain):
        return None
    base = batch.base_offset, batch.base_timestamp
    columns = section_columns(plain, batch.records_count, batch.attributes, base, batch.max_timestamp, budget.parts)
    if columns is None:
        return None
    _, _, _, keys, key_sizes, values, value_sizes, _, _ = columns.records.tolist()
    names, name_sizes, header_values, header_sizes = columns.headers.tolist()
    starts, sizes = [*keys, *values, *header_values], [*key_sizes, *value_sizes, *header_sizes]
    contents = sorted((each, each + size) for each, size in zip(starts, sizes, strict=True) if size > 0)
    of_headers = [(each, each + size) for each, size in zip(names, name_sizes, strict=True) if size > 0]
    return _Section(batch, at + HEADER.size, plain, contents, of_headers)


def _field_of(layout: MessageLayout, column: ColumnPlan) -> _TextNode:
    """Return the leaf of a column as trees have it, with its schema."""
    root, *names = column.path
    name, version = (layout.header, layout.header_version) if root == "header" else (layout.body, layout.body_version)
    assert name is not None
    current: TypePlan = plan(name, version)
    field: FieldPlan | None = None
    for each in names:
        assert isinstance(current, StructPlan)
        field = next(one for one in (*current.fields, *current.tagged) if one.name == each)
        current = field.type.element if isinstance(field.type, ArrayPlan) else field.type
    assert field is not None
    return _TextNode(
        column.type, Node(names[-1], ".".join(column.path), column.type.upper(), 0, 0, schema=field.schema)
    )
