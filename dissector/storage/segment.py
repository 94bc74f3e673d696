"""Log segments (`00000000000000000000.log`) and snapshots (`.checkpoint`): record batches one after the other.

The format is that of a `records` field, so `protocol.records` reads it; a row is a batch, or a message of before 0.11.
Zeros that a broker preallocated are no damage. The topic is in the folder's name, and so whether it is an internal one
whose records can be decoded; the metadata log, which has secrets, is recognized by its records, whatever the folder is.
"""

from collections.abc import Iterator
from itertools import islice
from mmap import mmap
from pathlib import Path
from typing import Final, cast

from dissector.capture.errors import DamagedRange as Damaged
from dissector.core.arrays import UInt8
from dissector.core.finding import Finding, Severity
from dissector.core.limits import DEFAULT
from dissector.core.text import counted
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.record_secrets import are_metadata_records
from dissector.protocol.embedded.secrets import annotate_secrets, masked
from dissector.protocol.embedded.topics import CLUSTER_METADATA
from dissector.protocol.embedded.tree import TreeEmbedder
from dissector.protocol.embedded.values import records_with_decoded
from dissector.protocol.message import Traced
from dissector.protocol.record_masking import masked_records, unopened
from dissector.protocol.records.batch import HEADER, MASK, Batch
from dissector.protocol.records.compression import DecompressionError, codec_name
from dissector.protocol.records.entries import LEAST_SIZE, LOG_OVERHEAD, MAGIC_AT, RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import ByteSource, Node
from dissector.protocol.wire import WireError
from dissector.storage.entry import EntryPosition, LogEntry, changed_entry, stored_message

KNOWN_ATTRIBUTES: Final = 0x7F
RAFT_TYPES: Final = frozenset({b"\x00\x02", b"\x00\x03"})
LARGEST_CONTROL: Final = 1 << 16
_ENTRIES: Final = (RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE)
_CHUNK: Final = 1 << 20
_MOST_LOOKED_AT: Final = 16
"""Batches at the beginning of a log, of `_CHUNK` bytes at most, that may say that it is the metadata log."""
_DIGITS: Final = 10
"""A partition's number has fewer."""


class LogSegment:
    """A file of batches."""

    kind = "batch"

    def __init__(self, name: str, data: mmap, *, show_secrets: bool) -> None:
        self._data = data
        self._show_secrets = show_secrets
        self._topic = CLUSTER_METADATA if _is_raft(data) or _has_metadata(data) else partition_of(name)[0]
        self.damage: Damaged | None = None

    def places(self) -> Iterator[EntryPosition]:
        """Yield the positions of batches and messages, up to anything else."""
        parts = split_entries(cast(bytes, self._data))  # a mapped file is read like bytes, and far larger
        for number, part in enumerate(parts, 1):
            if part.kind in _ENTRIES:
                yield EntryPosition(part.start, part.end)
            elif not _is_blank(self._data, part.start):
                words = (
                    "the file ends inside a batch" if part.kind is RecordsEntryKind.TRUNCATED else "this is no batch"
                )
                self.damage = Damaged(part.start, part.end - part.start, number, words)

    def entry(self, data: bytes, start: int) -> LogEntry:
        """Decode a batch or a message and verify its checksum. Whatever the metadata log has is a secret where it can't
        be read."""
        given, budget = data, frame_budget()
        if not self._show_secrets and self._topic == CLUSTER_METADATA:
            data = masked(data, _tree(data, self._topic).tree) if _is_one(data) else MASK * len(data)
        elif not self._show_secrets:
            data = masked_records(data, budget)
        entry = entry_of(data, start, self._topic, noted=data is not given)
        entry.findings.extend(unopened(budget))
        return entry


def entry_of(data: bytes, start: int, topic: str, *, noted: bool = False) -> LogEntry:
    """Decode the batch or message at offset `start` of a topic's log; masked secrets are `noted` in its tree."""
    if not _is_one(data):
        return changed_entry(LogSegment.kind, data, start)
    valid, version, info, timestamp = _summarize(data)
    message = stored_message(
        data,
        timestamp,
        lambda: {"position": start, **records_with_decoded(data, topic)["batches"][0]},
        lambda: _tree(data, topic, noted=noted),
    )
    words = "the checksum is not that of the bytes: the batch was damaged or changed"
    findings = [] if valid else [Finding("bad-crc", Severity.ERROR, words, "crc")]
    return LogEntry(message, version, info, findings)


def read_segment(name: str, data: mmap, *, show_secrets: bool) -> LogSegment | None:
    """Return a file as a segment, recognized by its first batch or message, which may be truncated; None if it is not
    one."""
    return LogSegment(name, data, show_secrets=show_secrets) if _begins_one(data) else None


def may_be_segment(head: UInt8) -> bool:
    """Return whether a file that begins with these bytes and goes on may be a segment."""
    if len(head) < HEADER.size:
        return True
    data = head.data
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    is_cut = data[MAGIC_AT] < 2 and len(head) < size <= DEFAULT.frame_size  # its checksum will decide
    return is_cut or _begins_one(data)


def partition_of(name: str) -> tuple[str, int | None]:
    """Return topic and partition from the name of a file's folder; an empty name and None if it has another one."""
    topic, _, number = Path(name).absolute().parent.name.rpartition("-")
    return (topic, int(number)) if topic and number.isdecimal() and len(number) < _DIGITS else ("", None)


def _is_one(data: bytes) -> bool:
    """Whether these bytes are exactly one batch or message."""
    part = next(split_entries(data), None)
    return part is not None and part.end == len(data) and part.kind in _ENTRIES


def _is_raft(data: mmap) -> bool:
    """Whether a log or a snapshot begins with a control record that only KRaft writes: a new leader, a snapshot's
    header. The key is a version and a type, each INT16."""
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    if data[MAGIC_AT] != 2 or size > min(len(data), LARGEST_CONTROL):
        return False
    batch = Batch.read(data[:size])
    try:
        first = batch.records(frame_budget())[:1] if batch.is_control else []
    except (DecompressionError, WireError):
        return False
    return any(record.key is not None and record.key[2:4] in RAFT_TYPES for record in first)


def _has_metadata(data: mmap) -> bool:
    """Whether one of the first batches has records of the metadata log and no others."""
    budget = frame_budget()
    for part in islice(split_entries(cast(bytes, data)), _MOST_LOOKED_AT):
        size = part.end - part.start
        if part.start + size > _CHUNK:
            break
        if part.kind is not RecordsEntryKind.BATCH:
            continue
        batch = Batch.read(data[part.start : part.end])
        try:
            values = [] if batch.is_control else [record.value for record in batch.records(budget)]
        except (DecompressionError, WireError):
            continue
        if are_metadata_records(values):
            return True
    return False


def _begins_one(data: mmap | memoryview) -> bool:
    head = bytes(data[: HEADER.size])
    if len(head) <= MAGIC_AT or head[MAGIC_AT] > 2:
        return False
    base_offset = int.from_bytes(head[:8], "big", signed=True)
    size = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    if base_offset < 0 or size < LEAST_SIZE[head[MAGIC_AT]]:
        return False
    if head[MAGIC_AT] < 2:
        return LOG_OVERHEAD + size <= len(data) and _is_message(bytes(data[: LOG_OVERHEAD + size]))
    if len(head) < HEADER.size:
        return False
    batch = Batch.read(head)
    return 0 <= batch.attributes <= KNOWN_ATTRIBUTES and batch.last_offset_delta >= 0 <= batch.records_count


def _is_message(data: bytes) -> bool:
    try:
        return LegacyRecord.read(data).crc_valid
    except WireError:
        return False


def _is_blank(data: mmap, start: int) -> bool:
    return all(not any(data[at : at + _CHUNK]) for at in range(start, len(data), _CHUNK))


def _summarize(data: bytes) -> tuple[bool, int, str, int | None]:
    """Return whether the checksum is valid, the magic, the text of the info column, and the newest timestamp."""
    if data[MAGIC_AT] == 2:
        batch = Batch.read(data)
        return batch.crc_valid, 2, _batch_words(batch), batch.max_timestamp
    try:
        message = LegacyRecord.read(data)
    except WireError as error:
        return False, data[MAGIC_AT], str(error), None
    words = f"offset {message.offset:,}"
    words += f" · messages {codec_name(message.codec)}" if message.codec else " · 1 message"
    return message.crc_valid, message.magic, words, message.timestamp


def _batch_words(batch: Batch) -> str:
    last = batch.base_offset + batch.last_offset_delta
    count = counted(batch.records_count, "record")
    words = [f"offset {last:,}" if last == batch.base_offset else f"offsets {batch.base_offset:,}–{last:,}"]
    words.append(f"{count} {batch.compression}" if batch.codec else count)
    if batch.producer_id >= 0:
        words.append(f"producer {batch.producer_id} epoch {batch.producer_epoch} sequence {batch.base_sequence}")
    words += ["transactional"] if batch.is_transactional else []
    words += ["control"] if batch.is_control else []
    return " · ".join(words)


def _tree(data: bytes, topic: str | None, *, noted: bool = False) -> Traced:
    """Return the tree of a batch's fields; masked ones get a note."""
    sources = [ByteSource(0, "batch", data)]
    root = Node("batch", "", "STRUCT", 0, len(data))
    records = RecordTracer(sources, frame_budget())
    records.field(data, 0, len(data), root)
    TreeEmbedder(sources, records, EMPTY_CONTEXT).batches(root, topic)
    if noted:
        annotate_secrets(root)
    return Traced(root, sources, [finding for node in root.walk() for finding in node.findings])
