"""Messages written as JSON by the native kernel, many at once (`json.c`).

A `JsonMessages` has the memory for the text, at most `MOST_BYTES`; a message for which there is no room is left to
Python.
"""

import ctypes
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core import limits
from dissector.core.arrays import Int64, UInt8, UInt64
from dissector.core.columns import unique
from dissector.core.expansion import RUN
from dissector.core.json_text import dumps
from dissector.core.kernel import kernel_function, structure_fields
from dissector.protocol.codec.json_program import SCOPE
from dissector.protocol.kernel.secret_marks import secret_marks
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.wire import uuid_text

_json = kernel_function("json", "P")
_compressed_sections = kernel_function("compressed_sections", "PPqqPPPP")
_join = kernel_function("join", "PPqP")
MOST_BYTES: Final = 64 << 20
FEW_BYTES: Final = 1 << 18
SCRATCH: Final = 4 << 20
"""Decompressed bytes of a section that the kernel decompresses itself: the largest block of lz4."""
_NONE: Final = np.zeros(0, np.int64)
_READ_ONLY: Final = 0x100
"""``PyBUF_READ`` of Python's object.h."""


class Outcome(IntEnum):
    """What became of a message."""

    WRITTEN = 0
    CAREFUL = 1
    """It is not written, as it has what the kernel leaves to Python, or does not fit its layout."""
    COMPRESSED = 2
    """The same, as it has compressed records, and no sections were given."""


class NamedTopics(NamedTuple):
    """What is written behind topic ids, by the ids."""

    ids: UInt8
    texts: UInt8
    starts: Int64
    is_internal: UInt8

    @classmethod
    def of(cls, names: Mapping[str, str], is_internal: Callable[[str], bool], key: str) -> "NamedTopics":
        """Return the table of some names by id, each to be written as a member `key`."""
        known = sorted((_id(text), name) for text, name in names.items() if _id(text))
        texts = [f',"{key}":'.encode() + dumps(name) for _, name in known]
        starts = np.cumsum([0, *map(len, texts)])
        return cls(
            np.frombuffer(b"".join(each for each, _ in known), np.uint8),
            np.frombuffer(b"".join(texts), np.uint8),
            starts,
            np.array([is_internal(name) for _, name in known], np.uint8),
        )


def _id(text: str) -> bytes:
    """The bytes of an id; empty for what is none."""
    try:
        raw = urlsafe_b64decode(f"{text}==")
    except ValueError:
        return b""
    return raw if len(raw) == 16 and uuid_text(raw) == text else b""


class Sections(NamedTuple):
    """The decompressed sections of messages, in the order of the wire."""

    first: Int64
    """The first one of each message; behind the last message, how many there are."""
    addresses: UInt64
    sizes: Int64
    owner: object


REPORT: Final = np.dtype([
    (name, np.int64)
    for name in (
        "reported", "error", "errors", "has_damaged_log", "records_fields", "has_compressed",
        "names_topics",
    )
])  # fmt: skip
"""`KernelJsonReport` of kernel.h: the value of the field that is marked so, else 0; the error code, and how many fields
have it; whether a topic is what damage made of the metadata log; how many fields of it have records, and
whether a compressed batch was met among those that were written; whether a field `topic` or `topic_id` was met last
that is not null."""
HOLE: Final = np.dtype([
    *((name, np.int64) for name in ("row", "at", "column", "address", "size")),
    ("names", np.int64, len(SCOPE)), ("name_sizes", np.int64, len(SCOPE)),
])  # fmt: skip
"""`KernelJsonHole` of kernel.h: the message; the place in the text for what a field holds, behind its bytes, or in
place of records; the field's column in the program, its address and size; the addresses and sizes of the fields of
`SCOPE` that were read last, -1 for null."""
HOLES_TOGETHER: Final = 1 << 12
Reports = np.ndarray[tuple[int], np.dtype[np.void]]
Holes = np.ndarray[tuple[int], np.dtype[np.void]]


class Written(NamedTuple):
    """What became of messages, `(n,)`."""

    starts: Int64
    """Where the text of each begins in `JsonMessages.text`."""
    ends: Int64
    sizes: Int64
    """Of the frames."""
    outcomes: UInt8
    reports: Reports
    """What else is known of each, as `REPORT`."""
    holes: Holes
    """As `HOLE`, in the order of the text. Until they are filled (`JsonMessages.fill`), messages are not whole."""


JSON: Final = """
const uint64_t *frames; /* address of each frame */
const int64_t *sizes;
const int64_t *times;
int64_t rows;
int64_t begin;            /* offset in a frame at which its layout begins */
const uint64_t *programs; /* of each message the address of its program, and that of the program's literals */
const uint8_t *topic_ids;    /* of 16 bytes each, ascending */
const uint8_t *topic_texts;  /* what is written behind each of them */
const int64_t *topic_starts; /* where its text begins in `topic_texts`, and where the last one ends */
const uint8_t *topic_is_internal;
int64_t topics;
const int64_t *first_section; /* by row, and behind the last row; NULL if there are no sections */
const uint64_t *sections;     /* address of each decompressed section */
const int64_t *section_sizes;
uint8_t *scratch; /* for a section that the kernel decompresses */
int64_t scratch_size;
int64_t most_plain; /* limits of one message, as `Limits` has them: bytes that are decompressed in any case, */
int64_t most_packed; /* records and headers beyond one for each byte, all of them */
int64_t most_records;
int64_t packed_ratio; /* times its size that a section may become without being counted: */
int64_t expanded;     /* bytes that sections of the messages that were written became beyond that */
const KernelSecretMarks *secrets; /* messages with records that may hold one are for Python; NULL if none are */
int64_t records_form; /* as `RecordsForm` */
KernelJsonHole *holes;
int64_t hole_capacity;
int64_t hole_count; /* of those that are filled */
uint8_t *out;
int64_t capacity;
int64_t *ends; /* by row, as are the next two */
uint8_t *codes;
KernelJsonReport *reports;
"""
"""Messages, and where `kernel_json` writes them: `KernelJson` of kernel.h."""


class _JsonCall(ctypes.Structure):
    """As `JSON`."""

    _fields_ = structure_fields(JSON)


class RecordsForm(IntEnum):
    """What is written of a `records` field."""

    DECODED = 0
    """Its records."""
    PACKED = 1
    """Its bytes in place of its records, as `tables.packing` packs it."""
    HEADS = 2
    """The headers of its batches alone."""


class JsonMessages:
    """The text of some messages, and the memory for it. Messages with records that may hold a secret are for Python,
    unless it `shows_secrets`."""

    def __init__(
        self,
        bounds: limits.Limits = limits.DEFAULT,
        *,
        form: RecordsForm = RecordsForm.DECODED,
        shows_secrets: bool = False,
    ) -> None:
        self._bounds = bounds
        self._form = form
        self._secrets = None if shows_secrets else secret_marks().address
        self.text: UInt8 = np.empty(FEW_BYTES, np.uint8)
        self._filled = 0
        self._scratch: UInt8 = np.empty(SCRATCH, np.uint8)
        self._holes: Holes = np.zeros(HOLES_TOGETHER, HOLE)

    def clear(self) -> None:
        """Forget all text. What still refers to it keeps it."""
        self._filled = 0
        size = len(self.text)
        del self.text
        self.text = np.empty(size, np.uint8)

    def write(
        self,
        frames: FrameMemory,
        times: Int64,
        programs: UInt64,
        topics: NamedTopics,
        begin: int,
        sections: Sections | None = None,
    ) -> Written:
        """Write messages, which have these times and, `(n, 2)`, the addresses of these programs. Their layouts begin
        `begin` bytes behind the start of their frames."""
        rows = len(frames)
        starts, ends = np.zeros((2, rows), np.int64)
        outcomes, reports = np.zeros(rows, np.uint8), np.zeros(rows, REPORT)
        holes: list[Holes] = [np.zeros(0, HOLE)]
        first = 0
        while first < rows:
            step = slice(first, rows)
            part = Written(starts[step], ends[step], frames.sizes[step], outcomes[step], reports[step], self._holes)
            some = FrameMemory(frames.addresses[step], frames.sizes[step], frames.owner)
            of_some = sections and sections._replace(first=sections.first[first:])
            count, filled = self._write(some, times[step], programs[step], topics, begin, of_some, part)
            part.ends[:count] += self._filled
            part.starts[:count] = np.append(self._filled, part.ends[: count - 1])[:count]
            holes.append(self._holes[:filled].copy())
            holes[-1]["row"] += first
            holes[-1]["at"] += self._filled
            self._filled = int(part.ends[count - 1]) if count else self._filled
            first += count
            are_many = count > 0 and filled >= HOLES_TOGETHER // 2
            if first < rows and not are_many and not self._grow():
                outcomes[first] = Outcome.CAREFUL
                first += 1
        return Written(starts, ends, frames.sizes, outcomes, reports, np.concatenate(holes))

    def fill(self, written: Written, texts: Sequence[bytes | None]) -> None:
        """Insert a text in each hole: messages are whole then. One is left to Python where a text is None, or where
        there is no room."""
        row = written.holes["row"]
        refused = row[np.array([text is None for text in texts], np.bool_)]
        written.outcomes[refused] = Outcome.CAREFUL
        kept = np.flatnonzero(~np.isin(row, refused))
        at, row = written.holes["at"][kept], row[kept]
        inserted = [text for number in kept.tolist() if (text := texts[number]) is not None]
        sizes = np.array([len(text) for text in inserted], np.int64)
        total = int(sizes.sum() + (written.ends - written.starts)[unique(row)].sum())
        while self._filled + total > len(self.text):
            if not self._grow():
                written.outcomes[row] = Outcome.CAREFUL
                return
        memory = np.frombuffer(b"".join(inserted) or b"\0", np.uint8)
        is_first, is_last = np.diff(row, prepend=-1) != 0, np.diff(row, append=-1) != 0
        # In front of each text what was written behind the one before it, and behind the last one the rest.
        before = np.where(is_first, written.starts[row], np.roll(at, 1))
        place = 2 * np.arange(len(row)) + np.cumsum(is_first) - 1
        behind = place[is_last] + 2
        addresses, lengths = np.zeros((2, 2 * len(row) + len(behind)), np.int64)
        addresses[place], lengths[place] = self.text.ctypes.data + before, at - before
        addresses[place + 1], lengths[place + 1] = memory.ctypes.data + np.cumsum(sizes) - sizes, sizes
        addresses[behind] = self.text.ctypes.data + at[is_last]
        lengths[behind] = written.ends[row[is_last]] - at[is_last]
        _join()(addresses.ctypes.data, lengths.ctypes.data, len(lengths), self.text.ctypes.data + self._filled)
        ends = self._filled + np.cumsum(lengths)[behind]
        written.starts[row[is_last]] = np.append(self._filled, ends[:-1])[: len(ends)]
        written.ends[row[is_last]] = ends
        self._filled += total

    def _grow(self) -> bool:
        """Make more room, if that is allowed."""
        if len(self.text) >= MOST_BYTES:
            return False
        larger = np.empty(2 * len(self.text), np.uint8)
        larger[: self._filled] = self.text[: self._filled]
        self.text = larger
        return True

    def _write(
        self,
        frames: FrameMemory,
        times: Int64,
        programs: UInt64,
        topics: NamedTopics,
        begin: int,
        sections: Sections | None,
        written: Written,
    ) -> tuple[int, int]:
        """Write as many messages as there is room for; return how many, and how many holes they have."""
        addresses, sizes = np.ascontiguousarray(frames.addresses), np.ascontiguousarray(frames.sizes)
        times, programs = np.ascontiguousarray(times, np.int64), np.ascontiguousarray(programs, np.uint64)
        found = sections or Sections(_NONE, _NONE.astype(np.uint64), _NONE, None)
        call = _JsonCall(
            addresses.ctypes.data, sizes.ctypes.data, times.ctypes.data, len(addresses), begin,
            programs.ctypes.data, topics.ids.ctypes.data, topics.texts.ctypes.data, topics.starts.ctypes.data,
            topics.is_internal.ctypes.data, len(topics.is_internal), found.first.ctypes.data,
            found.addresses.ctypes.data if sections is not None else None, found.sizes.ctypes.data,
            self._scratch.ctypes.data, len(self._scratch) if RUN.has_room else 0, self._bounds.packed_size,
            self._bounds.packed_records, self._bounds.frame_records, self._bounds.packed_ratio, 0, self._secrets,
            self._form, self._holes.ctypes.data, len(self._holes), 0,
            self.text.ctypes.data + self._filled,
            len(self.text) - self._filled,
            written.ends.ctypes.data, written.outcomes.ctypes.data, written.reports.ctypes.data,
        )  # fmt: skip
        count = _json()(ctypes.byref(call))
        RUN.take(0, int(call.expanded))
        return count, int(call.hole_count)


def join(addresses: UInt64, sizes: Int64) -> UInt8:
    """Return a copy of the bytes at these addresses, one behind the other."""
    addresses, sizes = np.ascontiguousarray(addresses), np.ascontiguousarray(sizes, np.int64)
    copy = np.empty(int(sizes.sum()), np.uint8)
    _join()(addresses.ctypes.data, sizes.ctypes.data, len(addresses), copy.ctypes.data)
    return copy


class CompressedSections(NamedTuple):
    """Compressed record sections, `(n,)`, in the order of the fields that have them."""

    field: Int64
    codec: Int64
    address: UInt64
    size: Int64


def compressed_sections(addresses: UInt64, sizes: Int64) -> CompressedSections:
    """Return the compressed sections of the `records` fields at these addresses."""
    addresses, sizes = np.ascontiguousarray(addresses), np.ascontiguousarray(sizes, np.int64)
    room = len(addresses)
    while True:
        field, codec, size = np.zeros((3, room), np.int64)
        address = np.zeros(room, np.uint64)
        count = _compressed_sections()(
            addresses.ctypes.data, sizes.ctypes.data, len(addresses), room, field.ctypes.data, codec.ctypes.data,
            address.ctypes.data, size.ctypes.data,
        )  # fmt: skip
        if count <= room:
            return CompressedSections(field[:count], codec[:count], address[:count], size[:count])
        room = count


def section_view(address: int, size: int) -> memoryview:
    """The bytes of a section where they are, valid as long as its frame is."""
    return _memory_view()(address, size, _READ_ONLY)


@cache
def _memory_view() -> Callable[[int, int, int], memoryview]:
    parameters = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
    found: Callable[[int, int, int], memoryview] = ctypes.PYFUNCTYPE(ctypes.py_object, *parameters)(
        ("PyMemoryView_FromMemory", ctypes.pythonapi)
    )
    return found
