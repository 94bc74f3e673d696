"""The JSON of many messages at once, which the kernel writes from their bytes.

Invariant: a message is that of `to_json` (a property test), or none where it needs a careful look: what the kernel
leaves to Python.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.cell_lines import CellLines
from dissector.bulk.decompressed_sections import DecompressedSections
from dissector.bulk.json_fields import FieldTexts, HoledMessages
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.columns import unique
from dissector.core.expansion import MOST_LISTED, RUN
from dissector.core.grouping import cuts
from dissector.core.identity_cache import IdentityCache
from dissector.core.json_text import dumps
from dissector.exchange.decoder import ExchangeDecoder
from dissector.index.indexer import Indexer
from dissector.protocol.codec.json_program import JsonProgram, Mark, is_value
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.embedded.formats import FORMATS, GROUP_MESSAGES
from dissector.protocol.embedded.topics import INTERNAL_TOPICS, RECORDS_FIELDS
from dissector.protocol.embedded.values import SUFFIX
from dissector.protocol.kernel.json_messages import (
    JsonMessages,
    NamedTopics,
    Outcome,
    RecordsForm,
    Sections,
    Written,
    compressed_sections,
    join,
    section_view,
)
from dissector.protocol.kernel.shredding import Arena, FrameMemory
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.schema.field_names import ERROR_CODES, TOPIC_ID

MOST_FRAME_BYTES: Final = 4 << 20
"""Bytes of the frames of rows that are written together, unless one row has more."""
LARGE_PART: Final = 1 << 15
"""Bytes of a part of a line from which on a piece of its own costs less than a copy."""
JOINED: Final = 1 << 20
"""Bytes of parts that are copied into one piece, unless one row has more."""
MOST_SESSIONS: Final = 8 << 20
"""Bytes of the partitions of fetch sessions that are in memory at once, unless one row has more."""
ROWS_PER_STEP: Final = 1 << 13
CODE_SHIFT: Final = 32
_TOPIC_FIELDS: Final = ("topic", "name")
_RECORDS: Final = "records"


class JsonBodies:
    """Messages of one capture, with their records in a `form`."""

    def __init__(
        self, indexer: Indexer, columns: BodyColumns, decoder: ExchangeDecoder, form: RecordsForm = RecordsForm.DECODED
    ) -> None:
        self._indexer = indexer
        self._decoder = decoder
        self._columns = columns
        self._messages = JsonMessages(form=form, shows_secrets=decoder.shows_secrets)
        self._arena = Arena()
        self._plain = DecompressedSections()
        self._fields = FieldTexts(
            indexer.conversation_state.common,
            packs_records=form != RecordsForm.DECODED,
            shows_secrets=decoder.shows_secrets,
        )
        self._sessions = IdentityCache[bytes](MOST_LISTED)
        """The texts of the last fetch sessions: most Fetches leave them as they are."""
        self._names: dict[str, str] = {}
        self._topics = NamedTopics.of({}, _is_internal, TOPIC_ID + SUFFIX)

    def make_programs(self) -> None:
        """Make the programs of all messages of the capture so far: processes that are forked later share them."""
        for is_request in (True, False):
            for _, layout in self._columns.layouts(is_request=is_request):
                _program(layout, is_request=is_request)

    def steps(self, rows: Int64) -> Iterator[Int64]:
        """Rows of the index in parts of which the lines are in memory at once."""
        costs = self._decoder.costs(rows) + MOST_FRAME_BYTES // ROWS_PER_STEP
        return iter(np.split(rows, cuts(costs, MOST_FRAME_BYTES)))

    def written(self, rows: Int64) -> "tuple[WrittenSide, WrittenSide]":
        """Write the requests and the responses of rows of the index, ascending, of one step, in place of those
        that were written before. `are_whole` says which rows have what they should."""
        self._decoder.update_conversation_state()
        names = dict(self._indexer.conversation_state.topic_names)
        if names != self._names:
            self._names, self._topics = names, NamedTopics.of(names, _is_internal, TOPIC_ID + SUFFIX)
        self._messages.clear()
        return self._written(rows)

    def requests(
        self, rows: Int64, requests: "WrittenSide", at: Int64, *, copied: bool = False
    ) -> "Iterator[tuple[slice, list[TextPart]]]":
        """Yield the parts that make the requests of some of the rows that were written, by their places, but for the
        last brace: an incremental Fetch has the partitions of its session besides. They come in groups, a slice of
        `at` each: few bytes stand for these partitions, and those of all rows may be too many for the memory. Rows
        share equal ones, unless all are to be `copied`."""
        first, room = 0, MOST_SESSIONS
        sessions: dict[int, bytes] = {}
        last = b""
        for number in np.flatnonzero(requests.epochs[at] > 0).tolist():
            place = int(at[number])
            text = self.session(int(rows[place]), names_topics=bool(requests.names_topics[place]))
            size = len(text) if copied or text is not last else 0
            if size > room and sessions:
                yield self._group(requests, at, slice(first, number), sessions)
                first, room, sessions = number, MOST_SESSIONS, {}
            sessions[place], last = text, text
            room -= size
        yield self._group(requests, at, slice(first, len(at)), sessions)

    def _group(
        self, requests: "WrittenSide", at: Int64, some: slice, sessions: dict[int, bytes]
    ) -> "tuple[slice, list[TextPart]]":
        return some, [requests.part(self._messages.text, at[some], cut=1), TextPart.some(at[some], sessions)]

    def responses(self, responses: "WrittenSide", at: Int64) -> "TextPart":
        """The responses of some of the rows that were written, by their places; empty where there is none."""
        return responses.part(self._messages.text, at)

    def pieces(self, parts: "list[TextPart]") -> tuple[Iterator[memoryview], Int64]:
        """The same in pieces, which are made one after the other: large parts are where they were written, the others
        are joined between them."""
        sizes = np.stack([part.sizes for part in parts], axis=1)
        return self._pieces(parts, sizes), sizes.sum(axis=1)

    def _pieces(self, parts: "list[TextPart]", sizes: Int64) -> Iterator[memoryview]:
        addresses = np.stack([part.addresses for part in parts], axis=1).astype(np.uint64)
        is_large = sizes >= LARGE_PART
        copied = np.where(is_large, 0, sizes)
        for some in np.split(np.arange(len(sizes)), cuts(copied.sum(axis=1), JOINED)):
            joined, ends = join(addresses[some].ravel(), copied[some].ravel()).data, np.cumsum(copied[some])
            start = 0
            for at in np.flatnonzero(is_large[some]).tolist():
                end = int(ends[at])
                row, number = divmod(at, len(parts))
                yield joined[start:end]
                yield parts[number].view(int(some[row]))
                start = end
            yield joined[start:]

    def joined(self, parts: "list[TextPart]") -> tuple[memoryview, Int64]:
        """The parts of each row, one behind the other, in memory of their own; and how many bytes each row has."""
        addresses = np.stack([part.addresses for part in parts], axis=1).astype(np.uint64)
        sizes = np.stack([part.sizes for part in parts], axis=1)
        return join(addresses.ravel(), sizes.ravel()).data, sizes.sum(axis=1)

    def _written(self, rows: Int64) -> "tuple[WrittenSide, WrittenSide]":
        """The JSON of requests and of responses."""
        table = self._indexer.table
        groups: list[_Group] = []
        for is_request in (True, False):
            for messages in self._columns.messages(rows, is_request=is_request):
                program = _program(messages.layout, is_request=is_request)
                if program is not None:
                    groups.append(_Group(messages, program, 0 if is_request else len(rows)))
        both = WrittenSide(*np.zeros((4, 2 * len(rows)), np.int64), *np.zeros((2, 2 * len(rows)), np.bool_))
        if groups:
            frames = np.concatenate((table.request.values[rows], table.response.values[rows]))
            self._write(groups, frames, both)
        return both.at(slice(len(rows))), both.at(slice(len(rows), None))

    def _write(self, groups: "list[_Group]", numbers: Int64, both: "WrittenSide") -> None:
        """Write messages, some by layout; `numbers` are those of all frames, by their places."""
        frames = FrameMemory(
            np.concatenate([messages.frames.addresses for messages, *_ in groups]),
            np.concatenate([messages.frames.sizes for messages, *_ in groups]),
            [messages.frames for messages, *_ in groups],
        )
        counts = [len(messages.at) for messages, *_ in groups]
        programs = np.repeat(np.array([group.program.addresses for group in groups], np.uint64), counts, axis=0)
        at = np.concatenate([messages.at for messages, *_ in groups])
        at += np.repeat([group.first for group in groups], counts)
        times = self._indexer.frames.time_ns.values[numbers[at]]
        written = self._messages.write(frames, times, programs, self._topics, PREFIX)
        ends = np.cumsum(counts)
        parts = [(at, written, np.repeat(np.arange(len(groups)), counts))]
        for some, sections in self._decompressed(groups, ends, written.outcomes):
            again = self._messages.write(frames.at(some), times[some], programs[some], self._topics, PREFIX, sections)
            parts.append((at[some], again, np.searchsorted(ends, some, side="right")))
        layouts = [(group.messages.layout, group.program) for group in groups]
        for at, some_written, group in parts:
            if len(some_written.holes):
                self._fill(some_written, layouts, group)
            both.take(at, some_written)

    def _fill(self, written: Written, layouts: list[tuple[MessageLayout, JsonProgram]], group: Int64) -> None:
        """Fill the holes of messages, each of which has one of these layouts."""
        holes = written.holes
        row = holes["row"]
        reports = written.reports[row]
        messages = HoledMessages(layouts, group[row], reports["records_fields"] <= 1, reports["has_compressed"] != 0)
        self._messages.fill(written, self._fields.texts(holes, messages))

    def session(self, row: int, *, names_topics: bool = True) -> bytes:
        """The member of a request that has the partitions of its session, of an incremental Fetch."""
        if not RUN.admits_session():  # before all partitions are copied
            return b""
        fetched = self._decoder.fetch_session(row, names_topics=names_topics)
        if fetched is None:
            return b""
        text = self._sessions.get(fetched)
        if text is None:
            listed = dumps([{"topic": topic, "partitions": each} for topic, each in fetched.items()])
            text = self._sessions.put(fetched, b',"fetch_session":' + listed, len(listed))
        RUN.take_session(fetched, len(text))
        return text

    def _decompressed(self, groups: "list[_Group]", ends: Int64, outcomes: UInt8) -> Iterator[tuple[Int64, Sections]]:
        """Messages with compressed records, by their numbers among those of all groups, which end there; with the
        decompressed sections, valid until the next. Those of which some can't be decompressed are left out."""
        compressed = np.flatnonzero(outcomes == Outcome.COMPRESSED)
        some: list[int] = []
        plain = self._plain
        plain.clear()
        for number in unique(np.searchsorted(ends, compressed, side="right")).tolist():
            messages, *_ = groups[number]
            first = int(ends[number]) - len(messages.at)
            of_group = compressed[(compressed >= first) & (compressed < ends[number])]
            for row, sections in self._sections(messages, of_group - first):
                if plain.add(sections):
                    some.append(first + row)
                if plain.is_full:
                    yield np.array(some, np.int64), plain.sections()
                    some = []
                    plain.clear()
        if some:
            yield np.array(some, np.int64), plain.sections()

    def _sections(self, messages: Messages, rows: Int64) -> Iterator[tuple[int, list[tuple[int, memoryview]]]]:
        """The codecs and the bytes of the compressed sections of each message, which are in the frames."""
        if not len(rows):
            return
        program, frames = messages.program, messages.frames.at(rows)
        columns = [number for number, column in program.values if column.type == _RECORDS]
        for part in self._arena.shred(frames, program, program.wanted(values=columns), PREFIX):
            for column in columns:
                sizes, positions, in_row = part.column(column)
                some = sizes > 0
                of = part.first + in_row[some].astype(np.int64)
                found = compressed_sections(frames.addresses[of] + positions[some].astype(np.uint64), sizes[some])
                listed = zip(
                    of[found.field].tolist(), found.codec.tolist(), found.address.tolist(), found.size.tolist(),
                    strict=True,
                )  # fmt: skip
                for row, each in groupby(listed, key=lambda section: section[0]):
                    yield int(rows[row]), [(codec, section_view(at, size)) for _, codec, at, size in each]


class _Group(NamedTuple):
    """Messages of one layout that are written."""

    messages: Messages
    program: JsonProgram
    first: int
    """The place of the first request of all rows, or of the first response."""


class WrittenSide(NamedTuple):
    """Where the requests of rows are in the text, or their responses, `(n,)`."""

    starts: Int64
    sizes: Int64
    """0 where one needs a careful look."""
    epochs: Int64
    """Of fetch sessions."""
    errors: Int64
    """The error code of a response and how many fields have it, as one number; 0 for none."""
    has_damaged_log: Bool
    """Whether it has a topic that is what damage made of the metadata log."""
    names_topics: Bool
    """Whether an incremental Fetch may change its session."""

    @property
    def codes(self) -> Int64:
        """The error codes alone."""
        return self.errors >> CODE_SHIFT

    def at(self, rows: slice) -> "WrittenSide":
        """Return those of some rows."""
        return WrittenSide(
            self.starts[rows], self.sizes[rows], self.epochs[rows], self.errors[rows], self.has_damaged_log[rows],
            self.names_topics[rows],
        )  # fmt: skip

    def take(self, at: Int64, written: Written) -> None:
        """Add what was written for some rows."""
        is_there = written.outcomes == Outcome.WRITTEN
        some = at[is_there]
        self.starts[some] = written.starts[is_there]
        self.sizes[some] = (written.ends - written.starts)[is_there]
        reports = written.reports[is_there]
        self.epochs[some] = reports["reported"]
        self.errors[some] = reports["error"] << CODE_SHIFT | reports["errors"]
        self.has_damaged_log[some] = reports["has_damaged_log"] != 0
        self.names_topics[some] = reports["names_topics"] != 0

    def part(self, text: UInt8, at: Int64, cut: int = 0) -> "TextPart":
        """Return the messages of some rows, without so many bytes at their end."""
        return TextPart(text.ctypes.data + self.starts[at], np.maximum(self.sizes[at] - cut, 0), text)


def are_whole(requests: WrittenSide, responses: WrittenSide, lack_response: Bool) -> Bool:
    """Return which rows have all messages that they should have, and no records of what damage made of the metadata
    log: they may be masked, and are not searched for secrets here."""
    is_there = (requests.sizes > 0) & ((responses.sizes > 0) | lack_response)
    return is_there & ~(requests.has_damaged_log | responses.has_damaged_log)


class TextPart(NamedTuple):
    """A part of each of some lines, `(n,)`."""

    addresses: Int64
    sizes: Int64
    owner: UInt8
    """The memory that has the bytes."""

    def view(self, line: int) -> memoryview:
        """Return the part of a line."""
        start = int(self.addresses[line]) - self.owner.ctypes.data
        return self.owner.data[start : start + int(self.sizes[line])]

    @classmethod
    def lines(cls, lines: CellLines) -> "TextPart":
        """Return the lines."""
        sizes = np.diff(lines.ends, prepend=0)
        return cls(lines.text.ctypes.data + lines.ends - sizes, sizes, lines.text)

    @classmethod
    def some(cls, at: Int64, texts: Mapping[int, bytes], otherwise: bytes = b"") -> "TextPart":
        """Return the texts of the lines of some rows, ascending, that have one by their places."""
        found = [otherwise]
        numbers: dict[int, int] = {}
        """By identity: rows may share a text."""
        for text in texts.values():
            if numbers.setdefault(id(text), len(found)) == len(found):
                found.append(text)
        which = np.zeros(len(at), np.int64)
        which[np.searchsorted(at, list(texts))] = [numbers[id(text)] for text in texts.values()]
        ends = np.cumsum([len(text) for text in found])
        memory = np.frombuffer(b"".join(found) or b"\0", np.uint8)
        sizes = np.diff(ends, prepend=0)
        return cls((memory.ctypes.data + ends - sizes)[which], sizes[which], memory)

    @classmethod
    def constant(cls, text: UInt8, count: int) -> "TextPart":
        """Return the same text for all lines."""
        return cls(np.full(count, text.ctypes.data), np.full(count, len(text)), text)


def _is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


@lru_cache(maxsize=1024)
def _program(layout: MessageLayout, *, is_request: bool) -> JsonProgram | None:
    """The program that writes messages of a layout; None where they need a careful look."""
    header, body = layout.header, layout.body
    if header is None or body is None or (body in FORMATS and body not in GROUP_MESSAGES):
        return None
    layouts = (("header", plan(header, layout.header_version)), ("body", plan(body, layout.body_version)))
    return JsonProgram(layouts, partial(marks, body, is_request=is_request))


def marks(body: str, column: ColumnPlan, *, is_request: bool) -> Mark:
    """What the kernel does with a field besides writing it."""
    if ".".join(column.path[1:]) in FORMATS.get(body, ()) and is_value(column, "bytes"):
        return Mark.OPENED
    topics, *_ = RECORDS_FIELDS.get(body, "").split(".")
    if is_value(column, "uuid") and column.name == TOPIC_ID:
        return Mark.TOPIC_ID
    if is_value(column, "string") and column.path[1:-1] == (topics,) and column.name in _TOPIC_FIELDS:
        return Mark.TOPIC_NAME
    if body == "FetchRequest" and column.path == ("body", "session_epoch"):
        return Mark.REPORTED
    if not is_request and is_value(column, "int16", "int32") and column.name in ERROR_CODES:
        return Mark.ERROR_CODE
    return Mark.NONE
