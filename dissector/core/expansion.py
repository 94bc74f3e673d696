"""What all that a run reads may become together: a bound for few bytes that stand for many, frame after frame.

Each frame has bounds of its own (`DecompressionBudget`). They allow what one real frame may need, which is thousands of
times what the smallest frame takes: 100 MB of such frames were terabytes. So what goes beyond `Limits.packed_ratio` for
each byte on the wire is taken from one room. When that is used up, a compressed section is not decompressed, which its
row says as for any damaged one where secrets are shown, and is masked where they are not; the session of an incremental
Fetch is not listed. Everything else goes on.

A run is a command, a capture that a program opens, or on the screen what happens between two keys. Processes that are
forked share the room. It grows with what is read, so that a small capture costs little; without any it is all there.
"""

import mmap
from typing import Final

import numpy as np

from dissector.core import limits
from dissector.core.identity_cache import IdentityCache
from dissector.core.text import byte_size

LISTED: Final = 8
"""Bytes that a partition of a session takes in a list, about; that a topic takes besides its name and partitions:"""
LISTED_TOPIC: Final = 30
TOPIC_SIZE: Final = 32
"""As many partitions take the same memory as a topic, about."""
NEW: Final = 16
"""How many times as much a list of a session costs that is new: to make it costs so much more than to write it again.
So there is room for 1,600 changes of a session with 5,000 partitions."""
MOST_LISTED: Final = 2 << 20
"""Bytes of the lists of sessions that are taken for unchanged: those of many connections follow each other in turn."""
TRACED: Final = 5_000
"""Bytes that a record takes in a tree, about: ten nodes. To make them costs 500 times as much as to decompress them."""
IN_COLUMNS: Final = 32
"""The same of a record that is read into columns, ..."""
AS_OBJECT: Final = 4_000
"""... and of one that is listed: of those beyond one for `FEWEST_BYTES` on the wire."""
FEWEST_BYTES: Final = 4
"""What a real record takes at least, which differs from the one before in offset and time."""
USED_UP: Final = "not decompressed, as those before it have used up what all may become together"


def partitions(session: object) -> int:
    """How many partitions are in the memory of a session, by topic, however few bytes stand for what is listed of it. A
    byte for each bounds what is alive to some ten megabytes, and few sessions are taken for changed that are not."""
    return sum(map(len, session.values())) if isinstance(session, dict) else 0


class Expansion:
    """The room of a run. Forked processes may take from it at the same time: it is about right then."""

    def __init__(self, room: int = limits.DEFAULT.most_run_expansion) -> None:
        self._most = self._size = room
        self._read = 0
        """Bytes of captures."""
        self._listed = IdentityCache[bool](MOST_LISTED)
        """The sessions that were listed last."""
        self.leave()

    def leave(self) -> None:
        """Begin a run that shares no room with the process that this one was forked from."""
        self._numbers = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64, 3)
        """What is left, sections and sessions that were left out: in memory that forked processes share."""
        self.begin()

    def begin(self) -> None:
        """Begin a run."""
        self._numbers[:] = self._size, 0, 0
        self._listed.clear()

    def grow(self, size: int) -> None:
        """Note that so many more bytes of captures are read."""
        self._read += size
        bounds = limits.DEFAULT
        grown = min(self._most, bounds.run_expansion + bounds.run_expansion_ratio * self._read)
        self._numbers[0] += grown - self._size
        self._size = grown

    @property
    def has_room(self) -> bool:
        """Whether anything is left."""
        return bool(self._numbers[0] > 0)

    def take(self, wire: int, size: int, bounds: limits.Limits = limits.DEFAULT) -> None:
        """Note that so many bytes on the wire became so many."""
        beyond = size - bounds.packed_ratio * wire
        if beyond > 0:
            self._numbers[0] -= beyond

    def take_session(self, session: object, size: int) -> None:
        """Note that a session was listed, in so many bytes. One that has not changed since costs little."""
        if self._listed.get(session):
            self.take(0, size)
        else:
            self.take(0, NEW * size)
            self._listed.put(session, True, max(size, partitions(session)))

    def take_records(self, wire: int, count: int) -> None:
        """Note that so many records of a compressed section, of so many bytes on the wire, became a tree."""
        self.take(wire, TRACED * count)

    def take_read(self, wire: int, count: int, cost: int) -> None:
        """Note that so many records of batches or messages of so many bytes were read, each for `cost`."""
        self.take(0, cost * max(0, count - wire // FEWEST_BYTES))

    def admits_section(self) -> bool:
        """Whether a section may be decompressed; counts those that may not."""
        if self.has_room:
            return True
        self._numbers[1] += 1
        return False

    def admits_session(self) -> bool:
        """Whether the partitions of a fetch session may be listed; counts those that may not."""
        if self.has_room:
            return True
        self._numbers[2] += 1
        return False

    def complaint(self) -> str:
        """What was left out, in a line; empty for nothing. Not how many: what is read twice is left out twice."""
        sections, sessions = self._numbers[1:].tolist()
        left = [
            *(["compressed records were not decompressed"] if sections else []),
            *(["partitions of fetch sessions were not listed"] if sessions else []),
        ]
        if not left:
            return ""
        room, ratio = byte_size(self._size), limits.DEFAULT.packed_ratio
        return (
            f"{', and '.join(left)}: those before became {room} larger than {ratio} times their size. Choose fewer "
            "rows with -Y to see those of them"
        )


RUN: Final = Expansion()
"""That of this process."""
