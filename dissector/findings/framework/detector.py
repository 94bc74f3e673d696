"""What a finder is: it sees every row once, in the order of the index as far as that was read.

What it keeps is bounded: `Recent` holds what is known by key. It tells a cause once, at the row where the cause is
recognised, and may tell the same case anew as it goes on: how often, for how long.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import ClassVar, Protocol

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.examined_rows import Rows
from dissector.findings.framework.open_findings import Case, Telling
from dissector.findings.framework.recurrence import Burst, Episode, Recent
from dissector.protocol.message import Values


class Around(Protocol):
    """What finders may ask about a capture."""

    def client(self, connection: int) -> str:
        """Who asks on a connection: client id and address, without the port, which changes with each connection."""

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the server of a connection said it has, there or elsewhere, by API key."""

    def closed(self, connection: int) -> tuple[int, bool]:
        """When it was closed, `NEVER` where it was not; and whether the client was the first to do so."""

    def is_offered(self, connection: int, key: int, version: int) -> bool:
        """Whether the server takes that version of an API, as far as it said."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet: no other connection of the capture has that."""

    def captured(self, frame: int) -> int:
        """How many bytes of a frame the capture has."""

    @property
    def has_resent(self) -> bool:
        """Whether TCP sent anything again, or brought it late."""

    def delays(self, frames: Int64) -> tuple[Int64, Int64]:
        """How long after it began the last byte of each frame was sent again, and how long one of it waited for others,
        in nanoseconds; 0 where none, or where there is no frame."""

    @property
    def waits_from(self) -> int:
        """The packet of the first row that is not there yet, as it may change; `NEVER` where all are."""

    def topic(self, named: Values) -> str:
        """The name of a topic that a structure names, or else its id."""


class Finder(ABC):
    """One class of findings."""

    explanation: ClassVar[Explanation]
    quiet_ns: ClassVar[int] = NEVER
    """After so long without another one, what comes is told as a case of its own."""

    def __init__(self, found: Telling) -> None:
        self._found = found
        self._episodes: Recent[Hashable, Episode] = Recent(Episode)

    def tell(self, row: int, message: str, path: str = "", severity: Severity | None = None) -> Case:
        """Something was found; `severity` where it is not that of the explanation."""
        return self._found.tell(self.explanation, row, message, path, severity)

    def again(self, key: Hashable, row: int, time_ns: int, message: str, path: str, what: str) -> None:
        """Something was found that is told once for `key`: with how often it came, as `what`, and within what time."""
        episode = self._episodes.of(key)
        if episode.case is None or time_ns - episode.last_ns > self.quiet_ns:
            episode.case, episode.words, episode.count = self.tell(row, message, path), message, 1
            episode.first_ns = episode.last_ns = time_ns
            return
        episode.count += 1
        episode.last_ns = max(episode.last_ns, time_ns)
        took = duration(episode.last_ns - episode.first_ns)
        episode.case.retell(f"{episode.words}; {episode.count:,} {what} within {took}")

    def burst(self, burst: Burst, row: int, time_ns: int, message: str, path: str) -> None:
        """A burst is on: tell it, or tell it anew; within what time is added."""
        words = f"{message} within {burst.took(time_ns)}"
        if burst.is_new or burst.case is None:
            burst.case = self.tell(row, words, path)
        else:
            burst.case.retell(words)

    @property
    def remembers(self) -> Int64:
        """Earlier rows of which it may tell something yet."""
        return np.zeros(0, np.int64)

    @property
    def looks_back(self) -> Int64:
        """Frames of earlier rows of which it will ask once more what TCP did to them."""
        return np.zeros(0, np.int64)


class OverRows(ABC):
    """Sees rows of the index alone."""

    at_end: ClassVar[bool] = False
    """Whether it looks at nothing but requests without an answer, and at how their connections ended."""

    @abstractmethod
    def take(self, rows: Rows) -> None:
        """The next rows."""


class OverBodies(ABC):
    """Sees what messages say."""

    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs that it looks at."""
    any_trouble: ClassVar[bool] = False
    """Whether it looks at exchanges of any API whose response bears an error, or was throttled."""

    @abstractmethod
    def look(self, seen: Seen) -> None:
        """The next exchange that is for it."""


class NarrowFinder(Finder):
    """Finds by what one connection says."""

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found)
        self.around = around


class RowFinder(NarrowFinder, OverRows):
    """Finds by the index alone."""


class BodyFinder(NarrowFinder, OverBodies):
    """Finds by what messages say."""
