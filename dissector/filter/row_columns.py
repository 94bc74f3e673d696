"""Rows of the index as columns, taken when they are asked for: what row fields are answered on, a stretch at a time.

An answer is 0 for no, 2 for yes, 1 for a row of which the index can't tell: with these, `and` is the least, `or` the
greatest, and `not` what is left to 2 (Kleene's logic of three values).

Invariant: no Python object is made for a row; only for each different text or connection.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.exchange.decoder import KIND_NAMES
from dissector.filter.predicates import Intervals, Predicate
from dissector.findings.told import NO_SEVERITY, Told
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.indexer import Indexer

NO, OPEN, YES = 0, 1, 2


class Ends(Protocol):
    """What knows the ends of connections: `Lookup`."""

    def ends(self, connection: int, /) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One column: numbers, which of them are there, which the index can't tell. Of texts, `words` says what each
    number stands for."""

    values: Int64
    there: Bool
    unclear: Bool | None = None
    words: Callable[[int], str | None] | None = None

    def exist(self) -> UInt8:
        """Which rows have a value."""
        there = self.there
        if self.words is not None:
            there = there & self._of_distinct(lambda value: value is not None)
        return self._told(there)

    def fit(self, predicate: Predicate) -> UInt8:
        """Which rows have one that fits."""
        if self.words is None and isinstance(predicate, Intervals):
            return self._told(self.there & predicate.of_column(self.values))
        return self._told(self.there & self._of_distinct(predicate))

    def _of_distinct(self, predicate: Predicate) -> Bool:
        """A predicate of every row, asked of each different value once."""
        different, which = np.unique(self.values, return_inverse=True)
        words = self.words or int
        hits = np.array([predicate(words(value)) for value in different.tolist()], np.bool_)
        found: Bool = hits[which] if len(hits) else np.zeros(0, np.bool_)
        return found

    def _told(self, hits: Bool) -> UInt8:
        answers = hits.astype(np.uint8) * YES
        if self.unclear is not None:
            answers[self.unclear] = OPEN
        return answers


class Telling(Protocol):
    """What knows, by numbers from 0, what rows tell by themselves and together with others: a capture."""

    def own(self, rows: Int64, /) -> tuple[Int64, Sequence[Told]]:
        """The number of each row of the index, and what numbers stand for; 0 where it is not known."""

    def several(self, rows: Int64, /) -> tuple[Int64, Sequence[Told]]:
        """The same of what several rows tell; 0 where that is nothing."""


@dataclass(frozen=True, slots=True)
class Sets:
    """A column of sets of values: numbers, by source, and which values each stands for; which rows are not known."""

    sources: tuple[tuple[Int64, Sequence[Collection[object]]], ...]
    unclear: Bool

    def exist(self) -> UInt8:
        """Which rows have a value that says something: an error of 0 does not."""
        return self.fit(lambda value: value != 0)

    def fit(self, predicate: Predicate) -> UInt8:
        """Which rows have one that fits."""
        hits = np.zeros(len(self.unclear), np.bool_)
        for numbers, sets in self.sources:
            different, which = np.unique(numbers, return_inverse=True)
            hits |= np.array([any(map(predicate, sets[number])) for number in different.tolist()], np.bool_)[which]
        answers = hits.astype(np.uint8) * np.uint8(YES)
        answers[self.unclear] = OPEN
        return answers


class IndexRows:
    """Some rows of the index, from 0, by number or one after the other; `first` and `connections` are how many rows and
    connections come before those of the index (entries of Kafka's own files, and these files)."""

    def __init__(
        self,
        session: Indexer,
        lookup: Ends,
        telling: Telling,
        rows: range | Int64,
        start_ns: int,
        first: int = 0,
        connections: int = 0,
    ) -> None:
        self._telling = telling
        self._session = session
        self._lookup = lookup
        self._numbers = rows
        self._rows = slice(rows.start, rows.stop) if isinstance(rows, range) else rows
        self._first = first
        self._connections = connections
        self.start_ns = start_ns

    def __len__(self) -> int:
        return len(self._request)

    def _of(self, name: str) -> Int64:
        values: Int64 = getattr(self._session.table, name).values[self._rows]
        return values

    @cached_property
    def _request(self) -> Int64:
        return self._of("request")

    @cached_property
    def _response(self) -> Int64:
        return self._of("response")

    @cached_property
    def asks(self) -> Bool:
        """Which have a frame of the client's; `answers`, of the server's."""
        flags: Bool = self._request != NO_FRAME
        return flags

    @cached_property
    def answers(self) -> Bool:
        flags: Bool = self._response != NO_FRAME
        return flags

    @cached_property
    def is_exchange(self) -> Bool:
        flags: Bool = self._of("kind") == RowKind.EXCHANGE
        return flags

    @cached_property
    def asked(self) -> Bool:
        """Exchanges with their request; `answered`, with their response; `orphans`, with it alone."""
        return self.is_exchange & self.asks

    @cached_property
    def answered(self) -> Bool:
        return self.is_exchange & self.answers

    @cached_property
    def orphans(self) -> Bool:
        return self.is_exchange & ~self.asks

    @cached_property
    def _strangers(self) -> Bool:
        return ~self.asks & ~self.answers

    @cached_property
    def api_key(self) -> Int64:
        return self._of("api_key")

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        return self._frames("time_ns")

    @cached_property
    def _sizes(self) -> tuple[Int64, Int64]:
        return self._frames("size")

    def _frames(self, name: str) -> tuple[Int64, Int64]:
        """What the frame table has of both sides; of some frame where there is none."""
        values = getattr(self._session.frames, name).values
        if not len(values):
            return np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        return values[np.maximum(self._request, 0)], values[np.maximum(self._response, 0)]

    @property
    def _all(self) -> Bool:
        return np.ones(len(self), np.bool_)

    def number(self) -> Cells:
        rows = np.asarray(self._numbers, np.int64)
        return Cells(rows + 1 + self._first, self._all)

    def kind(self) -> Cells:
        return Cells(self._of("kind"), self._all, words=KIND_NAMES.__getitem__)

    def api(self) -> Cells:
        """Of a response without its request the API is inferred, which takes a look at it."""
        return Cells(self.api_key, self.asked, self.orphans)

    def version(self) -> Cells:
        return Cells(self._of("version"), self.asked, self.orphans)

    def client_id(self) -> Cells:
        return Cells(self._of("client_id"), self.asked, words=self._session.client_ids.texts.__getitem__)

    def client(self) -> Cells:
        return Cells(self._of("connection"), self._all, words=lambda connection: self._lookup.ends(connection)[0])

    def server(self) -> Cells:
        return Cells(self._of("connection"), self._all, words=lambda connection: self._lookup.ends(connection)[1])

    def connection(self) -> Cells:
        return Cells(self._of("connection").astype(np.int64) + 1 + self._connections, self._all)

    def correlation_id(self) -> Cells:
        return Cells(self._of("correlation_id"), self.is_exchange)

    def latency(self) -> Cells:
        asked, answered = self._times
        return Cells(answered - asked, self.asked & self.answers)

    def time(self) -> Cells:
        """Nanoseconds since 1970."""
        asked, answered = self._times
        return Cells(np.where(self.asks, asked, answered), self._all, self._strangers)

    def since_start(self) -> Cells:
        """Nanoseconds since the capture's first packet."""
        cells = self.time()
        return Cells(cells.values - self.start_ns, cells.there, cells.unclear)

    def request(self) -> Cells:
        return Cells(self.api_key, self.asked)

    def response(self) -> Cells:
        return Cells(self.api_key, self.answered)

    def request_size(self) -> Cells:
        return Cells(self._sizes[0], self.asks, self._strangers)

    def response_size(self) -> Cells:
        return Cells(self._sizes[1], self.answers, self._strangers)

    @cached_property
    def _own(self) -> tuple[Int64, Sequence[Told]]:
        return self._telling.own(np.asarray(self._numbers, np.int64))

    @cached_property
    def _several(self) -> tuple[Int64, Sequence[Told]]:
        return self._telling.several(np.asarray(self._numbers, np.int64))

    @property
    def _untold(self) -> Bool:
        untold: Bool = self._own[0] == 0
        return untold

    def finding(self) -> Sets:
        """The codes of findings."""
        sources = tuple((numbers, [told.codes for told in values]) for numbers, values in (self._own, self._several))
        return Sets(sources, self._untold)

    def severity(self) -> Cells:
        """The gravest one's place among severities."""
        own, several = (
            np.array([told.severity for told in values])[numbers] for numbers, values in (self._own, self._several)
        )
        gravest = np.maximum(own, several)
        return Cells(gravest, gravest != NO_SEVERITY, self._untold)

    def error(self) -> Sets:
        """Error codes of the response."""
        numbers, values = self._own
        return Sets(((numbers, [told.errors for told in values]),), self._untold)


def has_any(keys: Int64, api_keys: Sequence[int]) -> Bool:
    """Which keys are among some APIs', `(n,)`."""
    known = np.zeros(_KEYS, np.bool_)
    known[[key for key in api_keys if 0 <= key < _KEYS]] = True
    found: Bool = known[np.clip(keys, -1, _KEYS - 1)] & (keys >= 0) & (keys < _KEYS)
    return found


_KEYS: Final = 1 << 15
"""API keys are INT16, none is negative."""
