"""Which responses with records of the metadata log surely hold no secret, of many at once: as
`metadata_log.without_secrets` finds it one at a time. Or, for words that show no record, which of them are surely not
masked as a whole.

The kernel reads the records, and the messages in their values, which are of few types.

Invariant: of a response that is found to be so `masking.mask_secrets` masks nothing, or nothing but contents of records
(property tests). Whatever is rare is not found to be so: batches that are compressed, records with headers, versions
that are not known; if no secret may be there, types that may hold one.
"""

from contextlib import suppress
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.columns import unique
from dissector.protocol.bulk_masking import are_clean
from dissector.protocol.codec.program import Part, Program, Wanted
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.messages import embedded_plan
from dissector.protocol.embedded.secrets import SECRET_CARRIERS, SECRET_FIELDS, are_times
from dissector.protocol.embedded.topics import CONTROL_VALUES, metadata_records
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, FrameMemory, Shredded
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.metadata_log import LARGEST
from dissector.protocol.records.batch import CONTROL
from dissector.protocol.records.column_reader import RecordReader
from dissector.protocol.records.columns import KINDS, BatchError, Entries, RecordColumns, column, valid_checksums
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.schema.loader import message

_HEAD: Final = 3
"""Bytes in front of a message in a value: the frame's version, the type of the record, its version, as varints."""
_LONGER: Final = 0x80
_CONTROL_KEY: Final = 4
"""Bytes in the key of a control record: its version and its type, as INT16. Its value begins with its version."""
_OF_CONTROL: Final = 1 << 16
"""In a kind: the type is one of control records."""
_BATCH: Final = KINDS.index(RecordsEntryKind.BATCH)
_TIMES: Final = ("base_offset", "base_timestamp", "max_timestamp", "producer_id")


class PublicResponses:
    """Finds them; it keeps its buffers for the next ones."""

    def __init__(self, *, with_secrets: bool = False) -> None:
        """`with_secrets` finds also those of which only contents of records are masked."""
        self._with_secrets = with_secrets
        self._reader = RecordReader()
        self._arena = Arena()
        self._values = Arena()

    def of(self, frames: FrameMemory, program: Program) -> Bool:
        """Which of some whole responses of one layout surely hold no secret of the metadata log, `(n,)`."""
        found = np.zeros(len(frames), np.bool_)
        records = [
            number for number, column in enumerate(program.columns)
            if column.part is Part.VALUE and column.type == "records"
        ]  # fmt: skip
        for part in self._arena.shred(frames, program, program.wanted(values=records, checked=True), PREFIX):
            is_public = are_clean(part, frames)
            for number in records:
                is_public &= ~self._may_be_masked(part, frames, number)
            found[part.first : part.stop] = is_public
        return found

    def _may_be_masked(self, part: Shredded, frames: FrameMemory, number: int) -> Bool:
        """Which responses of a part may have a secret in the records of a column, `(n,)`."""
        found = np.zeros(part.stop - part.first, np.bool_)
        sizes, positions, rows = part.column(number)
        there = np.flatnonzero(sizes > 0)
        rows, sizes, positions = rows[there], sizes[there], positions[there]
        of = part.first + rows.astype(np.int64)
        is_small = frames.sizes[of] <= LARGEST
        found[rows[~is_small]] = True
        addresses = frames.addresses[of] + positions.astype(np.uint64)
        are_public = self._are_public(addresses[is_small], sizes[is_small])
        found[rows[is_small][~are_public]] = True
        return found

    def _are_public(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Which of the fields at these addresses surely hold no secret, `(n,)`."""
        found = np.ones(len(sizes), np.bool_)
        data, ends = join(addresses, sizes), np.cumsum(sizes)
        for records in self._reader.read(data, ends - sizes, ends, np.arange(len(sizes))):
            field = records.entries["field"]
            found[field[~_are_plain(data, records.entries)]] = False
            found[field[records.entry[~self._are_known(records)]]] = False
        return found

    def _are_known(self, records: RecordColumns) -> Bool:
        """Which records have no headers, and no value or one that is a message without secrets."""
        is_control = column(records.entries, "attributes")[records.entry] & CONTROL != 0
        known: Bool = (records.headers == 0) & (records.value_size <= 0) & ~is_control
        framed = np.flatnonzero(~is_control & (records.headers == 0) & (records.value_size >= _HEAD))
        heads = _bytes_at(records.data, records.value[framed], _HEAD)
        is_short = (heads < _LONGER).all(axis=1)
        self._add_known(known, records, framed[is_short], heads[is_short, 1] << 8 | heads[is_short, 2], _HEAD)
        if is_control.any():
            self._add_known_control(known, records, np.flatnonzero(is_control & (records.headers == 0)))
        return known

    def _add_known_control(self, known: Bool, records: RecordColumns, rows: Int64) -> None:
        """Set in `known` which of these control records have a key and a value that are messages without secrets."""
        rows = rows[(records.key_size[rows] == _CONTROL_KEY) & (records.value_size[rows] >= 2)]
        keys, heads = (_bytes_at(records.data, at[rows], size) for at, size in ((records.key, 4), (records.value, 2)))
        is_short = (keys[:, :3] == 0).all(axis=1) & (keys[:, 3] < _LONGER) & (heads[:, 0] == 0)
        self._add_known(known, records, rows[is_short], keys[is_short, 3] << 8 | heads[is_short, 1] | _OF_CONTROL, 0)

    def _add_known(self, known: Bool, records: RecordColumns, rows: Int64, kinds: Int64, head: int) -> None:
        """Set in `known` which of these records have a value of their kind, behind its head, without secrets."""
        for kind in unique(kinds).tolist():
            layout = _layout(kind, with_secrets=self._with_secrets)
            if layout is None:
                continue
            some = rows[kinds == kind]
            program, wanted = layout
            values = FrameMemory.of_buffer(records.data, records.value[some], records.value_size[some])
            for part in self._values.shred(values, program, wanted, head):
                known[some[part.first : part.stop]] = (part.errors == 0) & (part.unclean == 0)


def _bytes_at(data: UInt8, at: Int64, size: int) -> Int64:
    """The bytes at some places, `(n, size)`."""
    found: Int64 = data[at[:, None] + np.arange(size)].astype(np.int64)
    return found


def _are_plain(data: UInt8, entries: Entries) -> Bool:
    """Which entries are batches that need no careful look."""
    plain = (entries["kind"] == _BATCH) & (entries["error"] == BatchError.NONE)
    plain &= entries["attributes"] & CODEC_MASK == 0
    for name in _TIMES:
        plain &= are_times(entries[name])
    plain &= valid_checksums(data, entries)
    found: Bool = plain
    return found


@lru_cache(maxsize=256)
def _layout(kind: int, *, with_secrets: bool) -> tuple[Program, Wanted] | None:
    """How to look at the messages of a kind, a type of records and a version; None where they may hold a secret, but
    `with_secrets`, or other messages, or are not known."""
    names = CONTROL_VALUES if kind & _OF_CONTROL else metadata_records()
    name, version = names.get(kind >> 8 & 0xFF), kind & 0xFF
    if name is None or name in FORMATS or name in SECRET_CARRIERS or (name in SECRET_FIELDS and not with_secrets):
        return None
    with suppress(KeyError):
        if message(name).valid_versions.contains(version):
            layout = embedded_plan(name, version)
            if kind & _OF_CONTROL and layout.fields[0].name != "version":
                return None  # the version in front of it is none of its fields
            program = Program((("body", layout),))
            return program, program.wanted(checked=True)
    return None
