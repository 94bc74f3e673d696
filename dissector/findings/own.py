"""What each row tells by itself, in two bytes a row: the codes of its findings, the gravest severity, its errors.

A row's number says what it tells; rows that tell the same have the same number. Most are told from their bytes, as
`alike` has it; the others are decoded once.

Invariants:
  * what stands here is what decoding the row gives: a property test;
  * 0 is for rows of which it is not known yet: they are decoded by who asks. It stays with rows to which more may come;
  * one thread writes at a time; who forks goes on with a column of its own, as a mapped one is shared with the parent.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column, Numbers
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.exchange.decoder import ACKS_0, UNANSWERED, ExchangeDecoder
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.findings.alike import Alike
from dissector.findings.told import NOTHING, Told
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind
from dissector.index.indexer import Indexer

TOGETHER: Final = 4_096
"""Rows whose bytes are compared together."""
STEP: Final = 64
"""Rows that are decoded between two words of progress."""
DIFFERENT: Final = 1 << 16
QUIET: Final = 1
"""Stands for a request that tells nothing."""
UNKNOWN: Final = Told(frozenset(("",)))
"""What 0 stands for: no row tells that."""


class OwnFindings:
    """Of one capture, which may still grow. `errors` gives those of an exchange."""

    def __init__(
        self, session: Indexer, store: Store, lookup: ExchangeDecoder, errors: Callable[[Exchange], Iterable[object]]
    ) -> None:
        self._session = session
        self._lookup = lookup
        self._errors = errors
        self._requests = Alike(store)
        self._responses = Alike(store)
        self._numbers = Column(np.uint16)
        self._told: Numbers[Told] = Numbers()
        self._told.of(UNKNOWN)
        self._told.of(NOTHING)
        self._process = os.getpid()
        self._telling = threading.Lock()

    @property
    def is_of_this_process(self) -> bool:
        """Whether it may be written to: a process that was forked makes one of its own."""
        return self._process == os.getpid()

    @property
    def told(self) -> list[Told]:
        """What each number stands for."""
        return self._told.values

    def of(self, rows: Int64) -> Int64:
        """The numbers of rows, `(n,)`; 0 where it is not known."""
        numbers = self._numbers.values
        found = np.zeros(len(rows), np.int64)
        there = rows < len(numbers)
        found[there] = numbers[rows[there]]
        return found

    def tell(self, rows: Int64, *, final: bool) -> Iterator[int]:
        """Find out about those of these rows of which it is not known, step by step: how many of the rows are done.
        Rows to which more may come are left open, unless the capture is `final`."""
        for first in range(0, len(rows), TOGETHER):
            with self._telling:
                self._numbers.grow(len(self._session.table))
                some = self._open(rows[first : first + TOGETHER], final=final)
                numbers = self._alike(some)
                self._numbers.values[some] = numbers
            yield first
            rest = some[numbers == 0]
            for at in range(0, len(rest), STEP):
                with self._telling:
                    self._decode(rest[at : at + STEP], final=final)
                yield first

    def _open(self, rows: Int64, *, final: bool) -> Int64:
        rows = rows[self.of(rows) == 0]
        if final:
            return rows
        table = self._session.table
        orphans = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] == NO_FRAME)
        known: Int64 = rows[self._session.is_complete(rows) & ~orphans]
        return known

    def _alike(self, rows: Int64) -> Int64:
        """The numbers of rows whose frames are like others; 0 for the rest."""
        table = self._session.table
        request, response = table.request.values[rows], table.response.values[rows]
        is_exchange = table.kind.values[rows] == RowKind.EXCHANGE
        quiet = is_exchange & (request != NO_FRAME)
        quiet[quiet] = self._among(self._requests, rows[quiet], request[quiet]) != 0
        numbers = np.zeros(len(rows), np.int64)
        answered, silent = quiet & (response != NO_FRAME), quiet & (response == NO_FRAME)
        numbers[answered] = self._among(self._responses, rows[answered], response[answered])
        unasked = table.flags.values[rows[silent]] & Flag.NO_RESPONSE_EXPECTED != 0
        numbers[silent] = np.where(unasked, self._number([ACKS_0]), self._number([UNANSWERED]))
        return numbers

    def _among(self, alike: Alike, rows: Int64, frames: Int64) -> Int64:
        table, columns = self._session.table, self._session.frames
        key, version = table.api_key.values[rows].astype(np.int64), table.version.values[rows].astype(np.int64)
        return alike.among(key, version, columns.contiguous(frames), columns.size.values[frames].astype(np.int64))

    def _decode(self, rows: Int64, *, final: bool) -> None:
        """What rows tell that have to be looked at; learn from them what others like them tell."""
        for row, exchange in zip(rows.tolist(), self._lookup.exchanges(rows), strict=True):
            if final or exchange.response is None or _is_whole(exchange.response):
                number = self._number(exchange.findings, self._errors(exchange))
                self._numbers.values[row] = number
                self._learn(row, exchange, number)

    def _learn(self, row: int, exchange: Exchange, number: int) -> None:
        request, response = exchange.request, exchange.response
        if request is None or exchange.api_key is None or request.findings:
            return
        version = int(self._session.table.version.values[row])
        for alike, message, told in ((self._requests, request, QUIET), (self._responses, response, number)):
            if message is not None and told and _is_whole(message) and not message.masked:
                alike.learn(exchange.api_key, version, message.shape, message.data, told)

    def _number(self, findings: list[Finding], errors: Iterable[object] = ()) -> int:
        """The number for what a row tells; 0 where there are too many different ones."""
        told = reduce(Told.more, findings, Told(errors=frozenset(errors)))
        return self._told.of(told) if len(self.told) < DIFFERENT else 0


def _is_whole(message: ExchangeMessage) -> bool:
    return message.size == message.whole == len(message.data)
