"""The state of every direction: its classification, how far it is framed, and what is held of it.

Shared by `framer`, `classifier`, `frame_splitter` and `resynchronizer`.
"""

from typing import Final

import numpy as np

from dissector.core.batches import FrameKind
from dissector.core.columns import Column
from dissector.framing.detector import Classification
from dissector.framing.frame_rows import FrameRow, FrameRows
from dissector.framing.frame_search import FrameSearch
from dissector.framing.pending_stream import PendingStream

LARGEST_ROW: Final = 2**31 - 1
"""Bytes of one row. A gap may be larger: sequence numbers have 32 bits."""
_MOST_PENDING_ROWS: Final = 8
"""Rows of skipped bytes that are kept until a direction is known to be Kafka."""
_UNDECIDED, _POSSIBLE, _, _, _OTHER = map(int, Classification)
"""Plain numbers: numpy compares its own with members of an enum slowly."""


class DirectionState:
    """The state of all directions, as columns and dicts by direction."""

    def __init__(self) -> None:
        self.mode = Column(np.uint8, _UNDECIDED)
        """A `Classification` each."""
        self.next = Column(np.int64, 0)
        """Stream offset of the next frame, for directions of which nothing is held."""
        self.ignored = Column(np.int64, 0)
        """Bytes of each direction that is not Kafka."""
        self.held: dict[int, PendingStream] = {}
        self.searches: dict[int, FrameSearch] = {}
        self.pending_rows: dict[int, list[FrameRow]] = {}
        """Rows of skipped bytes, of directions that are possibly Kafka: emitted once they are known to be."""
        self.needs_search: set[int] = set()
        """Directions to search again, as there are more bytes, or more is known of their peer."""
        self.is_flushed = False
        self.ended_directions: set[int] = set()
        """Directions whose connection ended while the capture goes on."""
        self.rows = FrameRows()

    def grow(self, directions: int) -> None:
        """Make room for this many directions."""
        for column in (self.mode, self.next, self.ignored):
            column.grow(directions)

    def has_ended(self, direction: int) -> bool:
        """Whether nothing more comes of a direction."""
        return self.is_flushed or direction in self.ended_directions

    def skip(self, direction: int, stream: PendingStream, kind: FrameKind, size: int) -> None:
        """Skip bytes. They become a row, which stays pending while the direction is only possibly Kafka."""
        while size > LARGEST_ROW:
            self._skip(direction, stream, kind, LARGEST_ROW)
            size -= LARGEST_ROW
        if size:
            self._skip(direction, stream, kind, size)

    def _skip(self, direction: int, stream: PendingStream, kind: FrameKind, size: int) -> None:
        seen = stream.run().seen
        row = FrameRow(direction, kind, stream.at, size, seen, stream.run(size - 1).seen[0], stream.pieces(size))
        stream.advance(size)
        if self.mode.values[direction] != _POSSIBLE:
            self.rows.add(row)
            return
        pending_rows = self.pending_rows.setdefault(direction, [])
        pending_rows.append(row)
        if len(pending_rows) > _MOST_PENDING_ROWS:
            self.ignored.values[direction] += pending_rows.pop(0).size

    def reject(self, direction: int) -> None:
        """Classify a direction as not Kafka, and drop what is held of it."""
        self.mode.values[direction] = _OTHER
        stream = self.held.pop(direction, None)
        held = stream.end - stream.at if stream else 0
        self.ignored.values[direction] += held + sum(row.size for row in self.pending_rows.pop(direction, ()))
        self.searches.pop(direction, None)

    def emit_pending_rows(self, direction: int) -> None:
        """Emit the rows of skipped bytes: the direction is Kafka."""
        for row in self.pending_rows.pop(direction, ()):
            self.rows.add(row)
