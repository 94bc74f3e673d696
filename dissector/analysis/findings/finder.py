"""What finders are given and what they give: rows of the index as columns, exchanges with bodies, and a place to tell.

A finder sees every row once, in the order of the index as far as it was read. What it keeps is bounded: `Recent` holds
what is known by key. It tells a cause once, at the row where the cause is recognised, and may tell the same case anew
as it goes on (`Case.retell`): how often, for how long.
"""

from abc import ABC
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.found import Case, Found
from dissector.findings import Severity
from dissector.protocol.message import Values
from dissector.session.table import NO_FRAME, Flag, Ints, RowKind
from dissector.text import duration

KEYS: Final = 16_384
"""Connections, partitions, groups of which a finder knows something, at most; past it those unseen for longest go."""
NEVER: Final = 1 << 62
"""Nanoseconds."""
SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000
Mask = npt.NDArray[np.bool_]
Key = TypeVar("Key")
State = TypeVar("State")


class Recent(Generic[Key, State]):
    """What is known by key, bounded."""

    def __init__(self, make: Callable[[], State], most: int = KEYS) -> None:
        self._make = make
        self._most = most
        self._known: OrderedDict[Key, State] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Key) -> State:
        """What is known of a key, to be changed in place; new where nothing is."""
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = self._make()
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return state

    def forget(self, key: Key) -> None:
        """Begin anew with a key."""
        self._known.pop(key, None)


class Rows(NamedTuple):
    """Rows of the index, ascending, beside what the frame table has of their frames: zeros where there is no frame."""

    row: Ints
    kind: Ints
    connection: Ints
    api_key: Ints
    version: Ints
    correlation_id: Ints
    client_id: Ints
    flags: Ints
    request: Ints
    response: Ints
    asked_ns: Ints
    answered_ns: Ints
    asked_start: Ints
    """Stream offset of the request."""
    answered_start: Ints
    asked_size: Ints

    def where(self, which: Mask | Ints) -> "Rows":
        """Some of them."""
        return Rows(*(column[which] for column in self))

    @property
    def asked(self) -> "Rows":
        """Those that are exchanges with a request."""
        return self.where((self.kind == RowKind.EXCHANGE) & (self.request != NO_FRAME))

    @property
    def answered(self) -> "Rows":
        """Those of exchanges with both sides."""
        return self.where((self.kind == RowKind.EXCHANGE) & (self.request != NO_FRAME) & (self.response != NO_FRAME))

    @property
    def unanswered(self) -> "Rows":
        """Requests without the response that they should have."""
        waits = (self.kind == RowKind.EXCHANGE) & (self.response == NO_FRAME)
        return self.where(waits & (self.flags & Flag.NO_RESPONSE_EXPECTED == 0))


class Seen(NamedTuple):
    """An exchange, looked into."""

    row: int
    connection: int
    key: int
    version: int
    asked_ns: int
    answered_ns: int
    """0 where there is no response."""
    request: Values
    """Empty where no finder asked for it."""
    response: Values
    """Empty where there is none, or it could not be read."""
    errors: list[int]
    """Error codes of the response that are not 0."""


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

    def captured(self, frame: int) -> int:
        """How many bytes of a frame the capture has."""

    def topic(self, named: Values) -> str:
        """The name of a topic that a structure names, or else its id."""


class Episode:
    """One cause, seen again and again."""

    __slots__ = ("case", "count", "first_ns", "last_ns", "words")

    def __init__(self) -> None:
        self.case: Case | None = None
        self.count = 0
        self.first_ns = self.last_ns = 0
        self.words = ""


class Finder(ABC):
    """One class of findings."""

    explanation: ClassVar[Explanation]
    quiet_ns: ClassVar[int] = NEVER
    """After so long without another one, what comes is told as a case of its own."""

    def __init__(self, found: Found, around: Around) -> None:
        self._found = found
        self.around = around
        self._episodes: Recent[Hashable, Episode] = Recent(Episode)

    def tell(self, row: int, message: str, path: str = "", severity: Severity | None = None) -> Case:
        """Something was found; `severity` where it is not that of the explanation."""
        return self._found.tell(self.explanation, row, message, path, severity)

    def again(self, key: Hashable, row: int, time_ns: int, message: str, path: str, what: str) -> Episode:
        """Something was found that is told once for `key`: with how often it came, as `what`, and within what time."""
        episode = self._episodes.of(key)
        if episode.case is None or time_ns - episode.last_ns > self.quiet_ns:
            episode.case, episode.words, episode.count = self.tell(row, message, path), message, 1
            episode.first_ns = episode.last_ns = time_ns
            return episode
        episode.count += 1
        episode.last_ns = max(episode.last_ns, time_ns)
        took = duration(episode.last_ns - episode.first_ns)
        episode.case.retell(f"{episode.words}; {episode.count:,} {what} within {took}")
        return episode


class RowFinder(Finder):
    """Finds by the index alone."""

    def take(self, rows: Rows) -> None:
        """The next rows."""
        raise NotImplementedError


class BodyFinder(Finder):
    """Finds by what messages say."""

    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs that it looks at."""
    reads_requests: ClassVar[bool] = True
    """Whether it looks at their requests, too: to read none saves time."""
    any_error: ClassVar[bool] = False
    """Whether it looks at exchanges of all APIs whose response says no: their requests may not have been read."""

    def look(self, seen: Seen) -> None:
        """The next exchange that is for it."""
        raise NotImplementedError
