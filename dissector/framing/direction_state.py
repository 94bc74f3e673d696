"""What framing knows of every direction: what it is, how far it is cut, what of it is held.

Shared by those who decide what directions are (`deciding`), cut them (`cutting`, `splitter`) and find lost places
(`seeking`).
"""

from typing import Final

import numpy as np

from dissector.core.batches import FrameKind
from dissector.core.columns import Column
from dissector.framing.detector import Classification
from dissector.framing.frame_rows import FrameRow, FrameRows
from dissector.framing.frame_search import FrameSearch
from dissector.framing.pending_stream import PendingStream

_UNTOLD: Final = 8
"""Rows kept of what was passed over before a direction is known to be Kafka."""
_UNDECIDED, _PERHAPS, _OTHER = Classification.UNDECIDED, Classification.PERHAPS, Classification.OTHER
"""Bound once: members of an enum are slow to look up."""


class DirectionState:
    """Of all directions."""

    def __init__(self) -> None:
        self.mode = Column(np.uint8, _UNDECIDED)
        """What each direction is, as `Classification`."""
        self.next = Column(np.int64, 0)
        """Where the next frame begins, for directions of which nothing is held."""
        self.ignored = Column(np.int64, 0)
        """Bytes of those that are not Kafka's."""
        self.held: dict[int, PendingStream] = {}
        self.searches: dict[int, FrameSearch] = {}
        self.untold: dict[int, list[FrameRow]] = {}
        """What was passed over of directions that are perhaps Kafka's."""
        self.stirred: set[int] = set()
        """Directions to search anew: more of them, or of their peer, is known."""
        self.ended = False
        self.over: set[int] = set()
        """Directions of which nothing more will come, though the capture goes on."""
        self.rows = FrameRows()

    def grow(self, directions: int) -> None:
        """Make room for so many."""
        for column in (self.mode, self.next, self.ignored):
            column.grow(directions)

    def is_over(self, direction: int) -> bool:
        """Whether nothing more will come of a direction."""
        return self.ended or direction in self.over

    def skip(self, direction: int, stream: PendingStream, kind: FrameKind, size: int) -> None:
        """Pass over bytes: a row, which is kept back while nobody knows whether this is Kafka."""
        if not size:
            return
        row = FrameRow(direction, kind, stream.at, size, stream.run().seen, stream.pieces(size))
        stream.advance(size)
        if self.mode.values[direction] != _PERHAPS:
            self.rows.add(row)
            return
        untold = self.untold.setdefault(direction, [])
        untold.append(row)
        if len(untold) > _UNTOLD:
            self.ignored.values[direction] += untold.pop(0).size

    def leave(self, direction: int) -> None:
        """A direction is not Kafka's."""
        self.mode.values[direction] = _OTHER
        stream = self.held.pop(direction, None)
        held = stream.end - stream.at if stream else 0
        self.ignored.values[direction] += held + sum(row.size for row in self.untold.pop(direction, ()))
        self.searches.pop(direction, None)

    def tell(self, direction: int) -> None:
        """What was passed over is of a direction that is Kafka's."""
        for row in self.untold.pop(direction, ()):
            self.rows.add(row)
