"""Where texts, bytes, records and ids stand in the messages of many rows, without a tree for each.

Invariant: a plain message (`BodyColumns`) has them at the places of its tree. One that needs a careful look has none
here: it does not fit its layout, or has tagged fields that no schema has.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Int64
from dissector.protocol.bulk_envelopes import NO_API
from dissector.protocol.codec.program import Part, Program, Wanted, message_program
from dissector.protocol.kernel.shredding import Arena, FrameMemory, Shredded
from dissector.protocol.message_layout import PREFIX, MessageLayout

_TYPES: Final = frozenset(("string", "bytes", "records", "uuid"))


class TextPlace(NamedTuple):
    """A text, bytes, records, or an id, with the number of its column in the program."""

    column: int
    start: int
    """Offset in the frame, behind the length."""
    size: int
    """-1 for null; of an id nothing."""


class MessageTexts(NamedTuple):
    """One message, its secrets masked."""

    layout: MessageLayout
    program: Program
    data: bytes
    places: list[TextPlace]
    """In the order of the wire."""


class TextReader:
    """Of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()
        self._wanted: dict[Program, tuple[Wanted, list[int], list[int]]] = {}

    def of(self, rows: Int64, *, is_request: bool) -> list[MessageTexts | None]:
        """The texts in the requests of rows, or in their responses; None for those that are not plain."""
        found: list[MessageTexts | None] = [None] * len(rows)
        for messages in self._bodies.messages(rows, is_request=is_request):
            for at, message in self._read(messages):
                found[at] = message
        return found

    def of_frames(self, layout: MessageLayout, frames: Sequence[bytes]) -> list[MessageTexts | None]:
        """The texts in frames of a layout with a header and a body; None for those that don't fit it."""
        assert layout.header is not None
        assert layout.body is not None
        program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
        sizes = np.array([len(each) for each in frames], np.int64)
        data = np.frombuffer(b"".join(frames), np.uint8)
        memory = FrameMemory.of_buffer(data, np.cumsum(sizes) - sizes, sizes)
        found: list[MessageTexts | None] = [None] * len(frames)
        for at, message in self._read(Messages(np.arange(len(frames)), NO_API, layout, program, memory)):
            found[at] = message
        return found

    def _read(self, messages: Messages) -> Iterator[tuple[int, MessageTexts]]:
        """Yield those that fit, each with its place."""
        wanted, texts, unknown = self._columns(messages.program)
        for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
            at = messages.at[part.first : part.stop].tolist()
            for row, places in _places(part, texts, unknown):
                yield at[row], _message(messages, part.first + row, places)

    def _columns(self, program: Program) -> tuple[Wanted, list[int], list[int]]:
        """What is wanted of a program, the columns with texts, and those that count unknown tags."""
        known = self._wanted.get(program)
        if known is None:
            columns = list(enumerate(program.columns))
            texts = [number for number, column in columns if column.type in _TYPES]
            unknown = [number for number, column in columns if column.part is Part.UNKNOWN_TAGS]
            known = self._wanted[program] = program.wanted(values=texts, nonzero=unknown), texts, unknown
        return known


def _message(messages: Messages, row: int, places: list[TextPlace]) -> MessageTexts:
    return MessageTexts(messages.layout, messages.program, messages.frames.data(row), places)


def _places(part: Shredded, texts: list[int], unknown: list[int]) -> Iterator[tuple[int, list[TextPlace]]]:
    """Yield the rows of a part that fit, each with its places."""
    fits = part.errors == 0
    for number in unknown:
        fits[part.column(number).rows] = False
    columns = [part.column(number) for number in texts]
    none = np.zeros(0, np.int64)
    rows = np.concatenate([none, *(each.rows for each in columns)])
    starts = np.concatenate([none, *(each.positions for each in columns)])
    sizes = np.concatenate([none, *(each.values for each in columns)])
    numbers = np.repeat(np.array(texts, np.int64), [len(each.rows) for each in columns])
    order = np.lexsort((starts, rows))
    edges = np.searchsorted(rows[order], np.arange(part.stop - part.first + 1)).tolist()
    places = list(map(TextPlace, numbers[order].tolist(), starts[order].tolist(), sizes[order].tolist()))
    for row in np.flatnonzero(fits).tolist():
        yield row, places[edges[row] : edges[row + 1]]
