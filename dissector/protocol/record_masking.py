"""Masks the secrets of records in their bytes: frame, batch and record keep their sizes and their structure, and a
checksum that was right is right again. A compressed section is compressed again to its size; one that does not fit is
masked whole.

Invariant: what `kernel.secret_marks` says no of is not looked at more closely; that is nearly all of real traffic. So
what looks closely (`embedded.record_secrets`) is imported where it is used.
"""

import operator
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.protocol.embedded.mask import Mask
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.kernel.secret_marks import secret_marks
from dissector.protocol.message import Decoded, read, trace
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.records.batch import CRC_FROM, HEADER, MASK, Batch
from dissector.protocol.records.columns import SectionColumns, section_columns
from dissector.protocol.records.compress_to_size import compress_to_size
from dissector.protocol.records.compression import (
    CODECS,
    DecompressionBudget,
    DecompressionError,
    TooLargeError,
    UsedUpError,
    codec_name,
)
from dissector.protocol.records.entries import LEAST_SIZE, LOG_OVERHEAD, MAGIC_AT, RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import CRC_FROM as MESSAGE_CRC_FROM
from dissector.protocol.records.legacy import DEEPEST, LegacyRecord
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.tree import UNPARSED
from dissector.protocol.wire import WireError

_CRC_SIZE: Final = 4
_MAGIC: Final = b"\x02"
_MOST_ATTRIBUTES: Final = 0x80
_MOST_OFFSETS: Final = 1 << 48
_TEXT: Final = re.compile(rb"[ -~]{6}")
"""A piece of a text, or of what is compressed to letters by chance. All codecs leave texts as they are where they are
new and short; the name of a secret may be elsewhere in the section, or cut off."""


class MaskedRecords(NamedTuple):
    """A frame without the secrets of its records."""

    data: bytes | None
    """The frame itself if it has none; None where they can't be distinguished from what is around them."""
    decoded: Decoded | None
    """Its values, if they were read."""
    reasons: tuple[Finding, ...] = ()
    """Why compressed sections could not be opened that are masked whole for that."""


def masked_frame(data: bytes, layout: MessageLayout, end: int, decoded: Decoded | None = None) -> MaskedRecords:
    """Mask the records of a frame, whose values may be known. Of one that can't be read to its end all bytes behind the
    fields that were read are searched."""
    decoded = decoded or read(data, layout, end)
    budget, at = frame_budget(), 0
    if not decoded.body or decoded.rest or end < len(data):
        return MaskedRecords(_masked_partly(data, layout, end, budget), None, unopened(budget))
    raws = list(_fields(layout.body or "", decoded.body))
    fields = [masked_records(raw, budget) for raw in raws]
    if all(map(operator.is_, fields, raws)):
        return MaskedRecords(data, decoded)
    parts: list[bytes] = []
    for raw, field in zip(raws, fields, strict=True):
        start = data.index(raw, at)
        parts += (data[at:start], field)
        at = start + len(raw)
    masked = b"".join((*parts, data[at:]))
    read_again = read(masked, layout)
    is_in_place = list(_fields(layout.body or "", read_again.body)) == fields  # and not a copy in front of one
    return MaskedRecords(masked if is_in_place else None, read_again, unopened(budget))


def _masked_partly(data: bytes, layout: MessageLayout, end: int, budget: DecompressionBudget) -> bytes:
    """Return a frame that can't be read to its end, its records masked and what may be a secret in all that was not
    read."""
    tree = trace(data, layout, end).tree
    unread = min((child.start for child in tree.children if child.type == UNPARSED), default=end)
    parts: list[bytes] = []
    at = 0
    for node in tree.walk():
        if node.type.endswith("RECORDS") and node.source == 0 and at <= node.start and node.end <= unread:
            start = node.children[0].end if node.children else node.end
            parts += (data[at:start], masked_records(data[start : node.end], budget))
            at = node.end
    return b"".join((*parts, data[at:unread], masked_unread(data[unread:])))


def _fields(message: str, body: dict[str, object]) -> Iterable[bytes]:
    """Yield the `records` fields of a message that are not empty, in the order of the wire."""
    topics, partitions, records = RECORDS_FIELDS[message].split(".")
    for topic in _list(body.get(topics)):
        for partition in _list(topic.get(partitions)):
            raw = partition.get(records)
            if isinstance(raw, bytes) and raw:
                yield raw


def _list(values: object) -> list[dict[str, object]]:
    return values if isinstance(values, list) else []


def masked_records(field: bytes, budget: DecompressionBudget | None = None) -> bytes:
    """Return a `records` field, or entries of a log, with its secrets masked; the field itself if it has none."""
    budget = budget or frame_budget()
    parts = [(part, _masked_entry(part.kind, field[part.start : part.end], budget)) for part in split_entries(field)]
    if all(new is None for _, new in parts):
        return field
    return b"".join(field[part.start : part.end] if new is None else new for part, new in parts)


def _masked_entry(kind: RecordsEntryKind, data: bytes, budget: DecompressionBudget, depth: int = 0) -> bytes | None:
    """Return an entry, in so many wrappers, with its secrets masked; None if it has none."""
    if kind is RecordsEntryKind.BATCH:
        return _masked_batch(Batch.read(data), budget)
    if kind is RecordsEntryKind.MESSAGE:
        return _masked_message(data, budget, depth)
    masked = masked_unread(data)
    return None if masked is data else masked


def masked_unread(data: bytes) -> bytes:
    """Return bytes that can't be read as records with what may be a secret masked."""
    masks = [*(_unread_masks(data) if secret_marks().is_near(data) else []), *_packed_masks(data)]
    return _with(masks, data) if masks else data


def _unread_masks(data: bytes) -> list[Mask]:
    from dissector.protocol.embedded.record_secrets import unread_masks

    return unread_masks(data)


def _packed_masks(data: bytes) -> list[Mask]:
    """Return the compressed sections of batches that begin in bytes, as far as they are there, if they show texts; not
    those that are whole and have no secret."""
    found: list[Mask] = []
    budget = frame_budget()
    next_text = -1
    at = data.find(_MAGIC, MAGIC_AT)
    while 0 <= at < len(data) - (HEADER.size - MAGIC_AT):
        start = at - MAGIC_AT
        head = Batch.read(data[start : start + HEADER.size])
        section, end = start + HEADER.size, min(len(data), start + LOG_OVERHEAD + head.batch_length)
        if _is_compressed(head):
            if next_text < section:
                text = _TEXT.search(data, section)
                next_text = len(data) if text is None else text.start()
            if next_text < end:
                batch = Batch.read(data[start:end])
                is_there = len(batch.data) == LOG_OVERHEAD + head.batch_length and batch.crc_valid
                if not is_there or _masked_batch(batch, budget) is not None:
                    found.append(Mask(section, end))
                at = end
        at = data.find(_MAGIC, at + 1)
    return found


def _is_compressed(head: Batch) -> bool:
    """Whether a header is one of a compressed batch, and hardly other bytes: no log has offsets as large as texts."""
    is_batch = head.batch_length >= LEAST_SIZE[2] and 0 <= head.base_offset < _MOST_OFFSETS
    return is_batch and head.codec > 0 and 0 < head.attributes < _MOST_ATTRIBUTES


def _is_masked_unopened(codec: int, section: bytes, error: DecompressionError, budget: DecompressionBudget) -> bool:
    """Whether a section that could not be opened is masked: it shows texts, or may be opened where it is read. The
    budget keeps why it was not opened."""
    may_open = isinstance(error, UsedUpError) or (isinstance(error, TooLargeError) and budget.has_masked)
    is_masked = may_open or _TEXT.search(section) is not None
    if is_masked:
        budget.has_masked = True
        budget.masked_unopened.append(f"{codec_name(codec)}: {error}")
    return is_masked


def unopened(budget: DecompressionBudget) -> tuple[Finding, ...]:
    """Return why compressed sections that are masked whole could not be opened."""
    return tuple(Finding("bad-compression", Severity.ERROR, words) for words in dict.fromkeys(budget.masked_unopened))


def _masked_batch(batch: Batch, budget: DecompressionBudget) -> bytes | None:
    section = batch.section
    if batch.is_masked:
        return None
    try:
        plain = budget.decompressed(batch.codec, section)
    except DecompressionError as error:
        is_masked = _is_masked_unopened(batch.codec, section, error, budget)
        return _with_section(batch, MASK * len(section)) if is_masked else None
    if not secret_marks().is_near(plain):
        return None
    masks = _section_masks(plain, batch)
    if not masks:
        return None
    budget.has_masked = True
    packed = compress_to_size(batch.codec, _with(masks, plain), section, _free(masks))
    return _with_section(batch, MASK * len(section) if packed is None else packed)


def _with_section(batch: Batch, section: bytes) -> bytes:
    data = batch.data[: HEADER.size] + section
    if not batch.crc_valid:
        return data
    crc = int(google_crc32c.value(data[CRC_FROM:]))
    return data[: CRC_FROM - _CRC_SIZE] + crc.to_bytes(_CRC_SIZE, "big") + data[CRC_FROM:]


def _section_masks(plain: bytes, batch: Batch) -> list[Mask]:
    """Return what to mask of a decompressed section: of its records, or of all if they can't be read."""
    base = batch.base_offset, batch.base_timestamp
    columns = section_columns(plain, batch.records_count, batch.attributes, base, batch.max_timestamp, len(plain))
    return _unread_masks(plain) if columns is None else list(_record_masks(plain, columns))


def _record_masks(plain: bytes, columns: SectionColumns) -> Iterator[Mask]:
    from dissector.protocol.embedded.record_secrets import content_masks, is_secret_header

    _, _, _, key, key_size, value, value_size, _, _ = columns.records
    name, name_size, content, content_size = columns.headers
    for number in range(len(name)):
        at, size = int(content[number]), int(content_size[number])
        if size > 0 and is_secret_header(plain[int(name[number]) : int(name[number]) + int(name_size[number])]):
            yield Mask(at, at + size)
    starts, sizes = (np.concatenate(each) for each in ((key, value, content), (key_size, value_size, content_size)))
    for number in _near(plain, starts, sizes):
        start = int(starts[number])
        for mask in content_masks(plain[start : start + int(sizes[number])]):
            yield mask._replace(start=start + mask.start, end=start + mask.end)


def _near(plain: bytes, starts: Int64, sizes: Int64) -> list[int]:
    """Return which contents need a closer look, by their places."""
    some = np.flatnonzero(sizes > 0)
    memory = np.frombuffer(plain, np.uint8)
    found = secret_marks().are_near((memory.ctypes.data + starts[some]).astype(np.uint64), sizes[some])
    near: list[int] = some[found].tolist()
    return near


def _masked_message(data: bytes, budget: DecompressionBudget, depth: int) -> bytes | None:
    """Return a message of magic 0 or 1 with its secrets masked, or those of the messages in it; None if it has none."""
    try:
        message = LegacyRecord.read(data)
    except WireError:
        masked = masked_unread(data)
        return None if masked is data else masked
    key, value = message.key or b"", message.value or b""
    behind = len(data) - len(value)
    new = _masked_wrapper(message, value, budget, depth) if message.codec else None
    contents = [(behind - 4 - len(key), key), *([] if message.codec else [(behind, value)])]
    near = [(at, content) for at, content in contents if content and secret_marks().is_near(content)]
    masks = [each._replace(start=at + each.start, end=at + each.end) for at, each in _content_masks(near)]
    if new is None and not masks:
        return None
    return _with_value(message, _with(masks, data if new is None else data[:behind] + new))


def _content_masks(contents: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Mask]]:
    """Yield what to mask of contents, each with the place of its content."""
    from dissector.protocol.embedded.record_secrets import content_masks

    for at, content in contents:
        yield from ((at, each) for each in content_masks(content))


def _masked_wrapper(message: LegacyRecord, value: bytes, budget: DecompressionBudget, depth: int) -> bytes | None:
    try:
        plain = budget.decompressed(message.codec, value, magic=message.magic)
    except DecompressionError as error:
        return MASK * len(value) if _is_masked_unopened(message.codec, value, error, budget) else None
    budget.has_masked |= depth == DEEPEST
    if depth == DEEPEST:
        return MASK * len(value) if secret_marks().is_near(plain) else None
    parts = [
        (part, _masked_entry(part.kind, plain[part.start : part.end], budget, depth + 1))
        for part in split_entries(plain)
    ]
    if all(new is None for _, new in parts):
        return None
    budget.has_masked = True
    inner = b"".join(plain[part.start : part.end] if new is None else new for part, new in parts)
    packed = compress_to_size(message.codec, inner, value, ())
    if packed is None:
        return MASK * len(value)
    return packed if message.magic else CODECS[message.codec].as_magic_0(packed)


def _with_value(message: LegacyRecord, data: bytes) -> bytes:
    """Return the bytes of a message with a right checksum, unless it was wrong."""
    if not message.crc_valid:
        return data
    crc = zlib.crc32(data[MESSAGE_CRC_FROM:])
    return data[: MESSAGE_CRC_FROM - _CRC_SIZE] + crc.to_bytes(_CRC_SIZE, "big") + data[MESSAGE_CRC_FROM:]


def _with(masks: Iterable[Mask], data: bytes) -> bytes:
    out = bytearray(data)
    for mask in masks:
        out[mask.start : mask.end] = mask.content()
    return bytes(out)


def _free(masks: Iterable[Mask]) -> list[tuple[int, int]]:
    """The spans that may have any letters, so that what is compressed has the right size."""
    return [(mask.start, mask.end) for mask in masks if not mask.number]
